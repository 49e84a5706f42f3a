#include "sim_hw/steps/steps.hpp"

#include "sim_hw/queries/queries.hpp"
#include "sim_hw/steps/decode_memory.hpp"
#include "sim_hw/steps/parallel_decode.hpp"
#include "sim_hw/steps/rollout_layout.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>
#include <string>

namespace temper::sim_hw {
namespace {

class Steps : public testing::Test {
 protected:
  const HardwareSpec& hardware(std::string_view name) { return **catalog_.hardware(name); }
  const ModelSpec& model(std::string_view name) { return **catalog_.model(name); }
  Device h200() { return make_device(hardware("nvidia-h200")); }
  StepModel one(std::string_view name) { return make_step_model(model(name)); }

  Cost ask(std::string_view kind,
           std::string_view params,
           std::string_view on = "nvidia-h200",
           std::int64_t cards = 1) {
    const auto answer =
        cost_of({catalog_, "."},
                {std::string(on), cards, std::string(kind), std::move(*Params::parse(params))});
    EXPECT_TRUE(answer) << kind << " " << params << ": " << answer.error().context;
    return answer ? *answer : Cost{};
  }

  Catalog catalog_ = Catalog::shipped();
};

double sum_of(const Metric& metric) {
  double sum = 0;
  for (const Term& term : metric.terms)
    sum += term.value;
  return sum;
}

TEST_F(Steps, DecodeIsAffineInTheBatchWithinATile) {
  const Device d = h200();
  for (const char* name : {"qwen2.5-0.5b", "qwen2.5-7b", "llama-3.1-70b"}) {
    const StepModel m = one(name);
    // Between tile boundaries, the line through the ends holds everywhere.
    for (const auto& [first, last] :
         {std::pair{1.0, 64.0}, std::pair{65.0, 128.0}, {129.0, 192.0}, {193.0, 256.0}}) {
      const double low = decode_seconds(d, m, {first, 2048, Launch::Graph});
      const double high = decode_seconds(d, m, {last, 2048, Launch::Graph});
      for (double batch = first; batch <= last; batch += 7) {
        const double line = low + (high - low) * (batch - first) / (last - first);
        EXPECT_NEAR(decode_seconds(d, m, {batch, 2048, Launch::Graph}) / line, 1, 0.02)
            << name << " " << batch;
      }
    }
  }
}

TEST_F(Steps, DecodeReadsWeightsOnceAndKeysAndValuesOncePerSequence) {
  const Device d = h200();
  const StepModel m = one("llama-3.1-8b");
  // At 64 sequences of 32768 tokens: 16 GB of weights, 64 x 32768 x 128 KiB = 275 GB of cache.
  const double cache = 64.0 * 32768 * (128 * 1024.0) / d.decode_bandwidth;
  const double weights = 2 * m.parameters / d.bandwidth;
  const double step = decode_seconds(d, m, {64, 32768, Launch::Graph});
  EXPECT_GT(step, cache + 0.9 * weights);
  EXPECT_LT(step, 1.1 * (cache + weights));
}

TEST_F(Steps, DecodeNeverGetsCheaperWithBatchOrContext) {
  for (const char* card : {"nvidia-h200", "cm384"}) {
    const Device d = make_device(hardware(card));
    for (const std::string& name : catalog_.model_names()) {
      const StepModel m = one(name);
      double before = 0;
      for (const double batch : {1.0, 2.0, 63.0, 64.0, 65.0, 128.0, 129.0, 1000.0, 1024.0}) {
        const double step = decode_seconds(d, m, {batch, 1000, Launch::Graph});
        EXPECT_GT(step, before) << name << " " << batch;
        EXPECT_GT(decode_seconds(d, m, {batch, 1001, Launch::Graph}), step) << name << " " << batch;
        before = step;
      }
    }
  }
}

TEST_F(Steps, AnEagerStepIsNeverFasterThanAGraph) {
  const Device d = h200();
  for (const std::string& name : catalog_.model_names()) {
    const StepModel m = one(name);
    for (const double batch : {1.0, 16.0, 512.0}) {
      for (const double context : {1.0, 4096.0, 131072.0}) {
        EXPECT_GE(decode_seconds(d, m, {batch, context, Launch::Eager}),
                  decode_seconds(d, m, {batch, context, Launch::Graph}))
            << name;
      }
    }
  }
  // A small model is bound by the host, a large one is not.
  EXPECT_GT(decode_seconds(d, one("qwen2.5-0.5b"), {1, 128, Launch::Eager}),
            2 * decode_seconds(d, one("qwen2.5-0.5b"), {1, 128, Launch::Graph}));
  EXPECT_EQ(decode_seconds(d, one("llama-3.1-70b"), {1, 128, Launch::Eager}),
            decode_seconds(d, one("llama-3.1-70b"), {1, 128, Launch::Graph}));
}

TEST_F(Steps, LogProbsCostNoLessThanPrefill) {
  const Device d = h200();
  for (const std::string& name : catalog_.model_names()) {
    const StepModel m = one(name);
    for (const double batch : {1.0, 8.0}) {
      for (const double seq : {1.0, 100.0, 4096.0, 16384.0})
        EXPECT_GE(logprob_seconds(d, m, {batch, seq}), prefill_seconds(d, m, {batch, seq}))
            << name << " " << batch << " x " << seq;
    }
  }
}

TEST_F(Steps, RecomputingCostsLessThanAnotherForwardPass) {
  const Device d = h200();
  for (const std::string& name : catalog_.model_names()) {
    const StepModel m = one(name);
    for (const PassShape shape : {PassShape{1, 128}, PassShape{4, 2048}, PassShape{1, 16384}}) {
      SumSink none;
      visit_forward_backward(d, m, shape, Recompute::None, none);
      SumSink full;
      visit_forward_backward(d, m, shape, Recompute::Full, full);
      SumSink forward;
      visit_trunk(d, m, shape, Pass::Forward, forward);
      EXPECT_GT(full.seconds, none.seconds) << name;
      // Dense layers stop before their down projection; routed experts run whole, since the
      // gradient of the router needs what they put out.
      EXPECT_LT(full.seconds - none.seconds, forward.seconds * (m.dense_layers > 0 ? 1 : 1 + 1e-9))
          << name;
      // Recomputing is never free, even if the host dominates.
      EXPECT_GE(forward_backward_seconds(d, m, shape, Recompute::Full),
                forward_backward_seconds(d, m, shape, Recompute::None))
          << name;
    }
  }
}

TEST_F(Steps, ReachAtMostAllExperts) {
  const Device d = h200();
  for (const char* name : {"qwen3-30b-a3b", "deepseek-v3"}) {
    const StepModel m = one(name);
    for (const double batch : {1.0, 8.0, 100.0, 1e5}) {
      ListSink list;
      visit_decode(d, m, batch, 1000, list);
      visit_trunk(d, m, {batch, 100}, Pass::Forward, list);
      for (const OpTerm& term : list.terms) {
        if (term.op != Op::Experts)
          continue;
        EXPECT_LE(term.sizes.b, m.experts) << name << " " << batch;
        EXPECT_GE(term.sizes.b, std::min(m.top_k, m.experts) * 0.999) << name << " " << batch;
      }
    }
  }
}

TEST_F(Steps, TermsOfTheExplanationSumToTheTime) {
  for (const char* name : {"qwen2.5-0.5b", "llama-3.1-8b", "qwen3-30b-a3b", "deepseek-v3"}) {
    const std::string m = std::string("model=") + name;
    for (const std::string& params : {m + ";batch=1;context=128;launch=graph",
                                      m + ";batch=1;context=128;launch=eager",
                                      m + ";batch=50;context=4000;launch=eager"}) {
      const Cost p = ask("decode_step", params + ";memory=report");
      EXPECT_NEAR(sum_of(*p.find("time")) / p.find("time")->value, 1, 1e-9) << params;
    }
    for (const std::string kind : {"prefill", "logprob_pass", "train_step"}) {
      for (const char* shape : {";batch=1;seq=16", ";batch=8;seq=2048"}) {
        const Cost p = ask(kind, m + shape + ";memory=report");
        for (const Metric& metric : p.metrics)
          EXPECT_NEAR(sum_of(metric) / metric.value, 1, 1e-9)
              << kind << " " << m << shape << " " << metric.name;
      }
    }
    const Cost p = ask("train_step", m + ";batch=1;seq=16;recompute=full;memory=report");
    EXPECT_NEAR(sum_of(*p.find("time")) / p.find("time")->value, 1, 1e-9) << m;
  }
  for (const char* launch : {"graph", "padded_graph"}) {
    const Cost p =
        ask("decode_step",
            std::string("model=deepseek-v3;batch_per_dp=8;tp=2;dp=128;ep=256;launch=") + launch,
            "cm384",
            128);
    EXPECT_NEAR(sum_of(*p.find("time")) / p.find("time")->value, 1, 1e-9) << launch;
  }
}

TEST_F(Steps, OneDeviceEqualsALayoutOfOneDevice) {
  const Device d = h200();
  const Fabric fabric = make_fabric(hardware("nvidia-h200"));
  for (const char* name : {"llama-3.1-8b", "qwen3-30b-a3b"}) {
    const StepModel m = one(name);
    EXPECT_DOUBLE_EQ(parallel_decode_seconds(d, fabric, m, {1, 1, 1}, {24, 24, 3000}),
                     decode_seconds(d, m, {24, 3000, Launch::Graph}));
  }
}

TEST_F(Steps, APaddedGraphCostsNoLessThanOneOfItsBatch) {
  const Device d = make_device(hardware("cm384"));
  const Fabric fabric = make_fabric(hardware("cm384"));
  const RolloutLayout layout{2, 128, 256};
  const StepModel m = make_step_model(model("deepseek-v3"), layout.tp, layout.ep);
  for (const double captured : {16.0, 64.0, 200.0}) {
    for (double batch = 1; batch <= captured; ++batch) {
      const double exact = parallel_decode_seconds(d, fabric, m, layout, {batch, batch, 1595});
      const double padded = parallel_decode_seconds(d, fabric, m, layout, {batch, captured, 1595});
      EXPECT_GE(padded, exact) << batch << " in " << captured;
      if (batch == captured) {
        EXPECT_EQ(padded, exact);
      }
    }
  }
}

// ---- check_rollout_layout ------------------------------------------------------------------

/// "tp=3 does not ...; nearest: tp=4" -> {"tp", 4}.
std::pair<std::string, std::int64_t> suggestion(const std::string& text) {
  const std::size_t at = text.find("nearest: ");
  if (at == std::string::npos)
    return {};
  const std::size_t equals = text.find('=', at);
  return {text.substr(at + 9, equals - at - 9),
          std::strtoll(text.c_str() + equals + 1, nullptr, 10)};
}

std::int64_t& term_of(RolloutDevices& layout, const std::string& name) {
  return name == "tp" ? layout.tp : name == "dp" ? layout.dp : layout.ep;
}

TEST_F(Steps, EveryRefusalNamesATermAndAValueThatIsAccepted) {
  std::mt19937_64 random(7);
  const auto any = [&](std::int64_t most) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most + 1));
  };
  const std::vector<std::string> names = catalog_.model_names();
  int refused = 0;
  for (int i = 0; i < 20000; ++i) {
    const ModelSpec& spec = model(names[random() % names.size()]);
    const HardwareSpec& machine = hardware(i % 2 == 0 ? "cm384" : "nvidia-h200");
    const std::int64_t cards = 1 + any(i % 3 == 0 ? 7 : 400);
    const std::int64_t devices = cards * machine.dies_per_card;
    RolloutDevices layout{any(20), any(40), any(300)};
    if (i % 4 == 0) {  // Ensures that enough cases reach the last check.
      layout.tp = std::int64_t{1} << any(4);
      layout.dp = std::max<std::int64_t>(1, devices / layout.tp);
    }
    std::string refusals;
    for (int round = 0;; ++round) {
      const Status status = check_rollout_layout(spec, machine, cards, layout);
      if (status)
        break;
      ++refused;
      const std::string& text = status.error().context;
      refusals += text + "\n";
      ASSERT_LT(round, 3) << refusals;  // Each term is corrected once.
      const auto [name, value] = suggestion(text);
      ASSERT_TRUE(name == "tp" || name == "dp" || name == "ep") << refusals;
      ASSERT_TRUE(text.starts_with(name + "=")) << refusals;
      ASSERT_NE(term_of(layout, name), value) << refusals;
      term_of(layout, name) = value;
    }
    EXPECT_EQ(layout.tp * layout.dp, devices) << refusals;
  }
  EXPECT_GT(refused, 20000);
}

TEST_F(Steps, TheNearestValueOfARefusalIsTheNearest) {
  // 128 heads, 256 experts, 128 cards of two dies.
  const auto refusal = [&](RolloutDevices layout) {
    const Status status =
        check_rollout_layout(model("deepseek-v3"), hardware("cm384"), 128, layout);
    return status ? std::string() : status.error().context;
  };
  EXPECT_EQ(refusal({2, 128, 256}), "");
  EXPECT_EQ(refusal({3, 128, 256}), "tp=3 does not divide the 128 heads; nearest: tp=2");
  EXPECT_EQ(refusal({2, 100, 256}),
            "dp=100 x tp=2 is not the 256 devices of 128 cards; nearest: dp=128");
  EXPECT_EQ(refusal({2, 128, 100}), "ep=100 does not divide the 256 experts; nearest: ep=128");
  EXPECT_EQ(refusal({0, 128, 256}), "tp=0: must be 1 or more; nearest: tp=1");
  // 6 cards have 12 devices: tp=8 divides the heads, not the devices.
  const Status few = check_rollout_layout(model("deepseek-v3"), hardware("cm384"), 6, {8, 1, 4});
  ASSERT_FALSE(few);
  EXPECT_EQ(few.error().context, "tp=8 does not divide the 12 devices of 6 cards; nearest: tp=4");
  const Status dense =
      check_rollout_layout(model("qwen2.5-7b"), hardware("nvidia-h200"), 2, {1, 2, 2});
  ASSERT_FALSE(dense);
  EXPECT_EQ(dense.error().context, "ep=2: the model has no experts; nearest: ep=1");
}

TEST(DecodeMemory, RefusesAnOversizedBatchAndNamesOneThatFits) {
  Catalog catalog = Catalog::shipped();
  const HardwareSpec& hardware = **catalog.hardware("nvidia-h200");
  const ModelSpec& model = **catalog.model("qwen2.5-7b");
  const Status refused = check_decode_memory(model, hardware, {}, 512, 8192);
  ASSERT_FALSE(refused);
  const std::string why = refused.error().context;
  const std::size_t at = why.find("nearest: batch = ");
  ASSERT_NE(at, std::string::npos) << why;
  const double nearest = std::stod(why.substr(at + 17));
  EXPECT_TRUE(check_decode_memory(model, hardware, {}, nearest, 8192));
  EXPECT_FALSE(check_decode_memory(model, hardware, {}, nearest * 1.05, 8192));
}

TEST(DecodeMemory, RefusesWeightsThatDoNotFit) {
  Catalog catalog = Catalog::shipped();
  const Status refused = check_decode_memory(
      **catalog.model("llama-3.1-405b"), **catalog.hardware("nvidia-h200"), {}, 1, 100);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().context.find("nearest: tp = 8"), std::string::npos)
      << refused.error().context;
}

}  // namespace
}  // namespace temper::sim_hw
