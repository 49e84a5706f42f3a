// Adapters (LoRA) in the trainable network and in the decoder, compared with merged weights.
#include "actors/policy/adapter.hpp"

#include "actors/policy/decoder.hpp"
#include "actors/policy/transformer.hpp"
#include "tests/support/tiny_adapter.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace temper::actors {
namespace {

using tests::kVocabulary;
using tests::random_adapter;

Pack some_pack() {
  Random random(3, "pack of an adapter test");
  Pack pack;
  for (int i = 0; i < 3; ++i) {
    pack.add_prompt(tests::random_tokens(random, 4));
    pack.add_response(tests::random_tokens(random, 5));
    pack.add_response(tests::random_tokens(random, 2));
  }
  return pack;
}

std::vector<float> logprobs(Transformer network) {
  const auto out = network.forward(some_pack(), 1.0, Graph::Discard);
  return {out.begin(), out.end()};
}

std::vector<float> gradients(Transformer network) {
  const Pack pack = some_pack();
  network.forward(pack, 1.0, Graph::Keep);
  std::vector<float> d(pack.targets().size());
  for (std::size_t i = 0; i < d.size(); ++i)
    d[i] = i % 2 == 0 ? 1.0f : -0.5f;
  network.backward(d);
  const auto all = network.gradients().span();
  return {all.begin(), all.end()};
}

void expect_near(std::span<const float> a, std::span<const float> b, float tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    EXPECT_NEAR(a[i], b[i], tolerance) << "at " << i;
}

TEST(Adapter, StartsAtTheBaseAndIsDeterminedByTheSeed) {
  const AdapterLayout layout = tests::tiny_adapter_layout();
  Adapter adapter = Adapter::initial(layout, 5);
  Weights weights = tests::tiny_weights();
  const InferenceWeights base = tests::frozen(weights);
  EXPECT_EQ(logprobs({weights.layout(), base, adapter}), logprobs(Transformer(weights)));
  EXPECT_TRUE(
      std::ranges::equal(adapter.values().span(), Adapter::initial(layout, 5).values().span()));
  EXPECT_FALSE(
      std::ranges::equal(adapter.values().span(), Adapter::initial(layout, 6).values().span()));
  for (std::size_t i = 0; i < layout.tensors().size(); ++i) {
    const TensorSpec& t = layout.tensors()[i];
    const auto values = adapter.values().span().subspan(static_cast<std::size_t>(t.offset),
                                                        static_cast<std::size_t>(t.elements()));
    const auto bound = static_cast<float>(1 / std::sqrt(static_cast<double>(t.shape[1])));
    const float largest =
        std::abs(*std::ranges::max_element(values, {}, [](float x) { return std::abs(x); }));
    if (i % 2 == 0) {
      EXPECT_LE(largest, bound) << t.name;
      EXPECT_GT(largest, bound / 2) << t.name;
    } else {
      EXPECT_EQ(largest, 0) << t.name;
    }
  }
}

TEST(Adapter, ComputesWhatMergedWeightsCompute) {
  Weights weights = tests::tiny_weights();
  const InferenceWeights base = tests::frozen(weights);
  for (const LoraConfig& lora :
       {LoraConfig{.rank = 3, .alpha = 6},
        LoraConfig{.rank = 1, .alpha = 5, .targets = {"v_proj"}},
        LoraConfig{.rank = 8, .alpha = 8, .targets = {"down_proj", "k_proj"}}}) {
    Adapter adapter = random_adapter(2, lora);
    Weights merged = tests::merged(adapter);
    const auto own = logprobs({weights.layout(), base, adapter});
    expect_near(own, logprobs(Transformer(merged)), 2e-5f);
    EXPECT_GT(std::abs(own[0] - logprobs(Transformer(weights))[0]), 1e-4f);
  }
}

// With W = W0 + s B A: dB = s dW A^T and dA = s B^T dW.
TEST(Adapter, GradientsFollowFromThoseOfMergedWeights) {
  Adapter adapter = random_adapter(4);
  const Layout layout = tests::tiny_layout();
  const InferenceWeights base = tests::frozen(tests::tiny_weights());
  Weights merged = tests::merged(adapter);
  const auto own = gradients({layout, base, adapter});
  const auto full = gradients(Transformer(merged));
  const auto scale = static_cast<float>(adapter.layout().lora().scale());
  const std::int64_t rank = adapter.layout().lora().rank;
  const float* values = adapter.values().data();
  ASSERT_EQ(own.size(), static_cast<std::size_t>(adapter.layout().size()));
  for (const AdapterTarget& t : adapter.layout().targets()) {
    const float* dw = full.data() + layout.tensors()[t.tensor].offset + t.row * t.in;
    for (std::int64_t r = 0; r < rank; ++r) {
      for (std::int64_t o = 0; o < t.out; ++o) {
        float db = 0;
        for (std::int64_t i = 0; i < t.in; ++i)
          db += scale * dw[o * t.in + i] * values[t.a + r * t.in + i];
        EXPECT_NEAR(own[static_cast<std::size_t>(t.b + o * rank + r)], db, 1e-4f);
      }
      for (std::int64_t i = 0; i < t.in; ++i) {
        float da = 0;
        for (std::int64_t o = 0; o < t.out; ++o)
          da += scale * values[t.b + o * rank + r] * dw[o * t.in + i];
        EXPECT_NEAR(own[static_cast<std::size_t>(t.a + r * t.in + i)], da, 1e-4f);
      }
    }
  }
}

TEST(Adapter, DecoderAndTrainerAgree) {
  for (const ComputeType type : {ComputeType::Float32, ComputeType::Bfloat16}) {
    ModelConfig model = tests::tiny_model();
    model.compute_dtype = type;
    const Layout layout = Layout::make(model, kVocabulary).value();
    const InferenceWeights base = tests::frozen(Weights::random(layout, 7));
    Adapter adapter = random_adapter(6);
    Random random(8, "tokens of an adapter test");
    const auto tokens = tests::random_tokens(random, 6);
    Decoder decoder(layout, 2);
    std::vector<DecoderRow> rows;
    for (std::int32_t i = 0; i < 6; ++i)
      rows.push_back({tokens[static_cast<std::size_t>(i)], 1, i});
    const WeightsView view(base, {{&adapter, std::ssize(rows)}});
    const auto logits = decoder.forward(view, rows, Decoder::Output::Logits);
    Pack pack;
    pack.add_prompt(std::span(tokens).first(1));
    pack.add_response(std::span(tokens).subspan(1));
    Transformer network(layout, base, adapter);
    const auto trained = network.forward(pack, 1.0, Graph::Discard);
    for (std::size_t i = 0; i < trained.size(); ++i) {
      const auto row = logits.subspan(i * kVocabulary, kVocabulary);
      double sum = 0;
      for (const float x : row)
        sum += std::exp(static_cast<double>(x));
      const auto target = static_cast<std::size_t>(tokens[i + 1]);
      EXPECT_NEAR(trained[i], static_cast<double>(row[target]) - std::log(sum), 1e-5);
    }
  }
}

// An adapter of zeros adds nothing, so only how the weights of the base are held can differ.
TEST(Adapter, FrozenWeightsInBfloat16ComputeWhatRoundedOnesDo) {
  for (const Architecture architecture :
       {Architecture::Llama, Architecture::Qwen2, Architecture::Qwen3}) {
    ModelConfig model = tests::tiny_model();
    model.architecture = architecture;
    model.compute_dtype = ComputeType::Bfloat16;
    const Layout layout = Layout::make(model, kVocabulary).value();
    Weights weights = Weights::random(layout, 7);
    const InferenceWeights base = tests::frozen(weights);
    EXPECT_LT(base.bytes() * 3, weights.values().bytes() * 2);
    const auto of_adapter = AdapterLayout::make(layout, {.rank = 2, .alpha = 2}).value();
    Adapter adapter(of_adapter);
    EXPECT_EQ(logprobs({layout, base, adapter}), logprobs(Transformer(weights)))
        << name_of(architecture);
  }
}

TEST(Adapter, AnImageHasTheNamesOfPeftAndNothingOfTheBase) {
  const Adapter adapter = random_adapter(1);
  const std::string image = tests::image_of(adapter);
  const auto parsed = parse_safetensors(tests::bytes_of(image)).value();
  ASSERT_EQ(parsed.tensors.size(), 2u * 2 * 7);
  EXPECT_EQ(parsed.tensors[0].name,
            "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight");
  EXPECT_EQ(parsed.tensors[1].name,
            "base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight");
  EXPECT_EQ(parsed.tensors[0].shape, (std::vector<std::int64_t>{3, 16}));
  EXPECT_EQ(parsed.tensors[1].shape, (std::vector<std::int64_t>{16, 3}));
  const auto read = Adapter::from_image(adapter.layout(), tests::bytes_of(image)).value();
  EXPECT_TRUE(std::ranges::equal(read.values().span(), adapter.values().span()));
  const auto other = tests::tiny_adapter_layout({.rank = 2, .alpha = 6});
  const auto refused = Adapter::from_image(other, tests::bytes_of(image));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().context.find("lora_A"), std::string::npos) << refused.error().context;
  EXPECT_FALSE(Adapter::from_image(adapter.layout(), tests::bytes_of(tests::tiny_image())));
}

TEST(AdapterLayout, NamesWhatItCannotAdapt) {
  const auto why = [](const LoraConfig& lora) {
    const auto made = AdapterLayout::make(tests::tiny_layout(), lora);
    return made ? std::string() : made.error().context;
  };
  EXPECT_EQ(why({.rank = 8, .alpha = 1}), "");
  // Keys and values of the tiny model: 2 heads of 4.
  EXPECT_NE(why({.rank = 9, .alpha = 1})
                .find("rank: must be at most 8, the smaller side of k_proj "
                      "(8 x 16), found 9"),
            std::string::npos);
  EXPECT_EQ(why({.rank = 9, .alpha = 1, .targets = {"q_proj"}}), "");
  EXPECT_NE(why({.targets = {}}).find("found an empty list"), std::string::npos);
  EXPECT_NE(why({.targets = {"lm_head"}}).find("lm_head can have no adapter"), std::string::npos);
  EXPECT_NE(why({.targets = {"query"}}).find("found \"query\""), std::string::npos);
  EXPECT_NE(why({.targets = {"q_proj", "q_proj"}}).find("q_proj is repeated"), std::string::npos);
}

}  // namespace
}  // namespace temper::actors
