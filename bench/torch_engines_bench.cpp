// Measures the torch engines on this machine as a share of its peak:
//   generation: sampled tokens/s of the rollout engine, by concurrency
//   training:   prompt and response tokens/s of the trainer engine (a shared prompt is computed
//               once, so this can exceed the plain floating-point bound)
//   reference:  the same for scoring
// each with the executed floating-point operations as a share of a large matrix product's rate,
// measured in the same run; and the breakdown of a decode step and of an update. Median of several
// repeats, with the spread (largest - smallest) / median.
#include "actors/policy/adamw.hpp"
#include "actors/policy/compute.hpp"
#include "actors/policy/decoder.hpp"
#include "actors/policy/reference.hpp"
#include "actors/policy/sampler.hpp"
#include "actors/policy/transformer.hpp"
#include "core/clock.hpp"
#include "core/random.hpp"
#include "rollout/torch/engine.hpp"
#include "trainer/torch/engine.hpp"
#include "trainer/torch/minibatch.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>

namespace {

using namespace temper;

constexpr std::int32_t kVocabulary = 14;
constexpr std::int64_t kPrompt = 8;
constexpr std::int64_t kResponse = 5;  // As in the addition task: four digits and the end token.
constexpr std::int32_t kNoEnd = kVocabulary;

struct Options {
  std::int32_t threads = 1;
  std::int32_t repeats = 5;
  std::int32_t groups = 64;
  std::int32_t responses = 16;
};

struct Subject {
  actors::ModelConfig model;
  actors::Layout layout;
  std::string image;
};

struct Timing {
  double seconds = 0;
  double spread = 0;
};

template <class F>
Timing measure(std::int32_t repeats, F f) {
  const RealClock clock;
  std::vector<double> times;
  f();
  for (std::int32_t i = 0; i < repeats; ++i) {
    const Time start = clock.now();
    f();
    times.push_back(seconds(clock.now() - start));
  }
  std::sort(times.begin(), times.end());
  const double median = times[times.size() / 2];
  return {median, (times.back() - times.front()) / median};
}

std::vector<std::int32_t> random_tokens(Random& random, std::int64_t n) {
  std::vector<std::int32_t> tokens;
  for (std::int64_t i = 0; i < n; ++i)
    tokens.push_back(2 + static_cast<std::int32_t>(random.below(kVocabulary - 2)));
  return tokens;
}

std::vector<trainer::TrainSample> make_batch(const Options& options) {
  Random random(1, "batch");
  std::vector<trainer::TrainSample> batch;
  for (std::int32_t g = 0; g < options.groups; ++g) {
    const auto prompt = random_tokens(random, kPrompt);
    for (std::int32_t i = 0; i < options.responses; ++i) {
      trainer::TrainSample s;
      s.group = GroupId(static_cast<std::uint64_t>(g));
      s.prompt = prompt;
      s.response = random_tokens(random, kResponse);
      s.behaviour_logprobs.assign(static_cast<std::size_t>(kResponse), -2.6f);
      s.reward = i % 2;
      batch.push_back(std::move(s));
    }
  }
  return batch;
}

/// Operations of one forward pass over such a packed batch, per prompt and response token.
double forward_flops_per_token(const Subject& s, const Options& o) {
  const double group_rows = static_cast<double>(kPrompt + o.responses * (kResponse - 1));
  const double group_tokens = static_cast<double>(o.responses * (kPrompt + kResponse));
  return actors::forward_flops(s.layout, 8).count() * group_rows / group_tokens;
}

void row(const std::string& what, double tokens, const Timing& t, double flops, double gemm) {
  const double rate = tokens / t.seconds;
  fmt::print(
      "  {:<26} {:>9.0f} tokens/s  spread {:>3.0f} %  {:>6.1f} GFLOP/s  {:>3.0f} % of GEMM\n",
      what,
      rate,
      100 * t.spread,
      rate * flops / 1e9,
      100 * rate * flops / gemm);
}

void bench_generation(const Subject& s, const Options& o, std::int32_t concurrency, double gemm) {
  rollout::TorchEngineOptions r;
  r.model = s.model;
  r.vocabulary = kVocabulary;
  r.end_tokens = {kNoEnd};  // Every response runs to its limit.
  r.sampling.max_new_tokens = Tokens(kResponse);
  r.concurrency = concurrency;
  const auto engine = rollout::make_torch_engine(r).value();
  const auto bytes = std::as_bytes(std::span(s.image));
  if (!engine->stage(PolicyVersion(0), bytes) || !engine->commit(PolicyVersion(0)))
    return;
  const auto batch = make_batch(o);
  double tokens = 0;
  const Timing t = measure(o.repeats, [&] {
    tokens = 0;
    for (std::size_t i = 0; i < batch.size(); ++i)
      engine->add({ResponseId(i), batch[i].prompt, {}});
    while (engine->load() > 0) {
      const rollout::StepResult result = engine->step().value();
      for (const rollout::Generation& g : result.finished)
        tokens += static_cast<double>(g.tokens.size());
    }
  });
  // Per sampled token: its own row, and its share of the prompt's rows.
  const double prompt_rows = static_cast<double>(kPrompt - 1) / (o.responses * kResponse);
  const double flops = actors::forward_flops(s.layout, 10).count() * (1 + prompt_rows);
  row(fmt::format("generate, {} at once", concurrency), tokens, t, flops, gemm);
}

void bench_training(const Subject& s, const Options& o, double gemm) {
  const auto batch = make_batch(o);
  trainer::TorchEngineOptions t;
  t.model = s.model;
  t.vocabulary = kVocabulary;
  const auto weights = [&] {
    return actors::Weights::from_image(s.layout, std::as_bytes(std::span(s.image))).value();
  };
  const auto engine = trainer::make_torch_engine(t, weights());
  const double tokens =
      static_cast<double>(batch.size()) * static_cast<double>(kPrompt + kResponse);
  const double forward = forward_flops_per_token(s, o);
  const Timing train = measure(o.repeats, [&] { engine->update(batch).value(); });
  row("train", tokens, train, 3 * forward, gemm);

  actors::TorchReferenceOptions r;
  r.model = s.model;
  r.vocabulary = kVocabulary;
  const auto reference = actors::make_torch_reference(r, weights());
  std::vector<actors::ScoringRequest> requests;
  for (const trainer::TrainSample& sample : batch)
    requests.push_back({sample.prompt, sample.response});
  row("reference",
      tokens,
      measure(o.repeats, [&] { reference->score(requests).value(); }),
      forward,
      gemm);
}

struct Part {
  std::string name;
  double seconds = 0;
};

void print_profile(const std::string& what, const std::vector<Part>& parts) {
  double total = 0;
  for (const Part& part : parts)
    total += part.seconds;
  fmt::print("  {}:", what);
  for (const Part& part : parts)
    fmt::print("  {} {:.0f} %", part.name, 100 * part.seconds / total);
  fmt::print("\n");
}

void profile_decode(const Subject& s, std::int32_t batch) {
  const auto weights =
      actors::Weights::from_image(s.layout, std::as_bytes(std::span(s.image))).value();
  actors::Decoder decoder(s.layout, batch);
  actors::Sampler sampler(1.0, 1.0);
  decoder.enable_profile();
  const RealClock clock;
  double sampling = 0;
  for (int repeat = 0; repeat < 200; ++repeat) {
    for (std::int32_t position = 0; position < 12; ++position) {
      std::vector<actors::DecoderRow> rows;
      for (std::int32_t slot = 0; slot < batch; ++slot)
        rows.push_back({2, slot, position});
      const auto logits = decoder.forward(weights, rows, actors::Decoder::Output::Logits);
      const Time start = clock.now();
      for (std::int32_t i = 0; i < batch; ++i) {
        const ResponseId id(static_cast<std::uint64_t>(i));
        sampler.draw(logits.subspan(static_cast<std::size_t>(i * kVocabulary), kVocabulary),
                     actors::sampling_uniform(1, id, position));
      }
      sampling += seconds(clock.now() - start);
    }
  }
  const actors::DecoderProfile& p = decoder.profile();
  print_profile(fmt::format("decode at {}", batch),
                {{"matmul", seconds(p.matmul)},
                 {"attention", seconds(p.attention)},
                 {"norm", seconds(p.norm)},
                 {"activation", seconds(p.activation)},
                 {"embedding", seconds(p.other)},
                 {"sampling", sampling}});
}

void profile_update(const Subject& s, const Options& o) {
  auto weights = actors::Weights::from_image(s.layout, std::as_bytes(std::span(s.image))).value();
  actors::Transformer network(weights);
  actors::AdamWState optimizer(s.layout);
  const auto batch = make_batch(o);
  const RealClock clock;
  std::vector<Part> parts{{"packing", 0}, {"forward", 0}, {"backward", 0}, {"optimizer", 0}};
  for (int repeat = 0; repeat < 10; ++repeat) {
    Time at = clock.now();
    const auto lap = [&](std::size_t part) {
      const Time now = clock.now();
      parts[part].seconds += seconds(now - at);
      at = now;
    };
    for (const auto& minibatch : trainer::split_minibatches(batch, 4, 1, 0)) {
      const auto micro = trainer::pack_micro_batches(batch, minibatch, 16384);
      lap(0);
      for (const trainer::MicroBatch& m : micro) {
        const auto logprobs = network.forward(m.pack, 1.0, actors::Graph::Keep);
        lap(1);
        network.backward(std::vector<float>(logprobs.size(), 1e-4f));
        lap(2);
      }
      const double norm = actors::gradient_norm(network.gradients());
      actors::adamw_step({}, network.gradients(), norm, optimizer, weights);
      lap(3);
    }
  }
  print_profile("update", parts);
}

Status run(const Options& o, std::int32_t hidden, std::int32_t layers) {
  actors::ModelConfig model;
  model.hidden = hidden;
  model.layers = layers;
  model.ffn = 3 * hidden;
  TEMPER_TRY(const actors::Layout layout, actors::Layout::make(model, kVocabulary));
  const Subject s{model, layout, actors::Weights::random(layout, 1).to_image({})};
  const double gemm = actors::measure_gemm_rate().count();
  fmt::print("d = {}, {} layers, {} parameters; GEMM {:.0f} GFLOP/s, {} thread(s)\n",
             hidden,
             layers,
             layout.parameters(),
             gemm / 1e9,
             o.threads);
  for (const std::int32_t concurrency : {1, 16, 64, 256})
    bench_generation(s, o, concurrency, gemm);
  bench_training(s, o, gemm);
  for (const std::int32_t batch : {16, 256})
    profile_decode(s, batch);
  profile_update(s, o);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  CLI::App app{"Throughput of the torch engines as a share of this machine's GEMM rate."};
  app.add_option("--threads", o.threads);
  app.add_option("--repeats", o.repeats);
  app.add_option("--groups", o.groups);
  app.add_option("--responses", o.responses);
  CLI11_PARSE(app, argc, argv);
  temper::actors::set_compute_threads(o.threads);
  for (const auto& [hidden, layers] : {std::pair(64, 2), std::pair(128, 4)}) {
    if (auto status = run(o, hidden, layers); !status) {
      fmt::print(stderr, "{}\n", status.error().context);
      return 1;
    }
  }
  return 0;
}
