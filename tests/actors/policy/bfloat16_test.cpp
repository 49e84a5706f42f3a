// Products of bfloat16 operands: compared with float32, which other tests compare with a textbook.
#include "actors/model_folder/bfloat16.hpp"

#include "actors/policy/decoder.hpp"
#include "actors/policy/transformer.hpp"
#include "core/files.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/tiny_policy.hpp"
#include "trainer/torch/engine.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace temper::actors {
namespace {

using tests::bytes_of;

Layout layout_of(ComputeType type, Architecture architecture = Architecture::Llama) {
  ModelConfig model = tests::tiny_model();
  model.architecture = architecture;
  model.tie_embeddings = architecture != Architecture::Llama;
  model.compute_dtype = type;
  return Layout::make(model, tests::kVocabulary).value();
}

std::string published(const Weights& weights) {
  std::string image;
  const Status status = weights.publish({}, [&](std::span<const std::byte> part) -> Status {
    image.append(reinterpret_cast<const char*>(part.data()), part.size());
    return {};
  });
  EXPECT_TRUE(status) << status.error().context;
  return image;
}

std::vector<std::int32_t> tokens_of_a_response() {
  Random random(5, "tokens");
  return tests::random_tokens(random, 12);
}

/// The log-prob of every token but the first, as training computes it.
std::vector<float> trained_logprobs(Weights& weights) {
  const auto tokens = tokens_of_a_response();
  Pack pack;
  pack.add_prompt(std::span(tokens).first(1));
  pack.add_response(std::span(tokens).subspan(1));
  Transformer network(weights);
  const auto logprobs = network.forward(pack, 1.0, Graph::Discard);
  return {logprobs.begin(), logprobs.end()};
}

/// The same as generation computes it.
std::vector<float> generated_logprobs(const Layout& layout, const WeightsView& weights) {
  const auto tokens = tokens_of_a_response();
  std::vector<DecoderRow> rows;
  for (const std::int32_t token : tokens)
    rows.push_back({token, 0, static_cast<std::int32_t>(rows.size())});
  Decoder decoder(layout, 1);
  const auto logits = decoder.forward(weights, rows, Decoder::Output::Logits);
  std::vector<float> logprobs;
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
    const auto row = logits.subspan(i * tests::kVocabulary, tests::kVocabulary);
    double sum = 0;
    for (const float z : row)
      sum += std::exp(static_cast<double>(z));
    const auto target = static_cast<std::size_t>(tokens[i + 1]);
    logprobs.push_back(static_cast<float>(static_cast<double>(row[target]) - std::log(sum)));
  }
  return logprobs;
}

double largest_difference(std::span<const float> a, std::span<const float> b) {
  EXPECT_EQ(a.size(), b.size());
  double most = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    most = std::max(most, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  return most;
}

TEST(Bfloat16, RoundsToTheNearestAndTiesToEven) {
  const auto rounded = [](float x) { return to_float(to_bfloat16(x)); };
  constexpr float kStep = 1.0f / 128;  // Between neighbors from 1 to 2.
  EXPECT_EQ(rounded(1 + 0.4f * kStep), 1.0f);
  EXPECT_EQ(rounded(1 + 0.6f * kStep), 1 + kStep);
  EXPECT_EQ(rounded(1 + 0.5f * kStep), 1.0f);
  EXPECT_EQ(rounded(1 + 1.5f * kStep), 1 + 2 * kStep);
  EXPECT_EQ(rounded(-3.0f), -3.0f);
  EXPECT_TRUE(std::isnan(rounded(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_TRUE(std::isinf(rounded(std::numeric_limits<float>::max())));
}

class Bfloat16Products : public ::testing::TestWithParam<Architecture> {};
INSTANTIATE_TEST_SUITE_P(Architectures,
                         Bfloat16Products,
                         ::testing::Values(Architecture::Llama,
                                           Architecture::Qwen2,
                                           Architecture::Qwen3),
                         [](const auto& of) { return std::string(name_of(of.param)); });

TEST_P(Bfloat16Products, AreCloseToThoseOfFloat32) {
  Weights exact = Weights::random(layout_of(ComputeType::Float32, GetParam()), 7);
  Weights rounded = Weights::random(layout_of(ComputeType::Bfloat16, GetParam()), 7);
  const double difference = largest_difference(trained_logprobs(exact), trained_logprobs(rounded));
  EXPECT_LT(difference, 0.05);
  EXPECT_GT(difference, 1e-4) << "operands were not rounded";
}

TEST_P(Bfloat16Products, AreTheSameInTrainingAndGeneration) {
  const Layout layout = layout_of(ComputeType::Bfloat16, GetParam());
  Weights weights = Weights::random(layout, 7);
  const auto engine = InferenceWeights::from_image(layout, bytes_of(published(weights)));
  ASSERT_TRUE(engine) << engine.error().context;
  // Sums of another order, which may round an operand the other way.
  EXPECT_LT(largest_difference(trained_logprobs(weights), generated_logprobs(layout, *engine)),
            5e-3);
}

TEST_P(Bfloat16Products, HaveGradientsCloseToThoseOfFloat32) {
  const auto gradients = [&](ComputeType type) {
    Weights weights = Weights::random(layout_of(type, GetParam()), 7);
    const auto tokens = tokens_of_a_response();
    Pack pack;
    pack.add_prompt(std::span(tokens).first(1));
    pack.add_response(std::span(tokens).subspan(1));
    Transformer network(weights);
    network.forward(pack, 1.0, Graph::Keep);
    network.backward(std::vector<float>(pack.targets().size(), 1.0f));
    return network.gradients().clone();
  };
  const FloatBuffer exact = gradients(ComputeType::Float32);
  const FloatBuffer rounded = gradients(ComputeType::Bfloat16);
  const auto product = [](const FloatBuffer& a, const FloatBuffer& b) {
    return std::inner_product(a.data(), a.data() + a.size(), b.data(), 0.0);
  };
  const double cosine =
      product(exact, rounded) / std::sqrt(product(exact, exact) * product(rounded, rounded));
  EXPECT_GT(cosine, 0.999);
  EXPECT_LT(cosine, 1 - 1e-9) << "operands were not rounded";
}

TEST(PublishedWeights, AreTheImageOfFloat32Weights) {
  const Weights weights = Weights::random(layout_of(ComputeType::Float32), 7);
  EXPECT_EQ(published(weights), weights.to_image({}));
}

TEST(PublishedWeights, HaveShortMatricesAndExactVectors) {
  const Weights weights = Weights::random(layout_of(ComputeType::Bfloat16), 7);
  const std::string image = published(weights);
  const auto parsed = parse_safetensors(bytes_of(image));
  ASSERT_TRUE(parsed) << parsed.error().context;
  for (const TensorView& tensor : parsed->tensors) {
    EXPECT_EQ(tensor.type, tensor.shape.size() == 2 ? StoredType::Bfloat16 : StoredType::Float32)
        << tensor.name;
  }
}

TEST(InferenceWeights, AreTheSameFromAFloat32ImageAndFromAPublishedOne) {
  const Layout layout = layout_of(ComputeType::Bfloat16, Architecture::Qwen3);
  const Weights weights = Weights::random(layout, 7);
  const auto exact = InferenceWeights::from_image(layout, bytes_of(weights.to_image({})));
  const auto rounded = InferenceWeights::from_image(layout, bytes_of(published(weights)));
  ASSERT_TRUE(exact && rounded);
  EXPECT_EQ(generated_logprobs(layout, *exact), generated_logprobs(layout, *rounded));
  EXPECT_LT(exact->bytes().count(), weights.values().bytes().count() * 6 / 10);
}

TEST(InferenceWeights, RejectEveryTruncationOfAnImage) {
  const Layout layout = layout_of(ComputeType::Bfloat16);
  const std::string image = published(Weights::random(layout, 7));
  for (std::size_t length = 0; length < image.size(); length += 97)
    EXPECT_FALSE(InferenceWeights::from_image(layout, bytes_of(image.substr(0, length))));
}

TEST(InferenceWeights, NameATensorThatIsNotFinite) {
  const Layout layout = layout_of(ComputeType::Bfloat16);
  Weights weights = Weights::random(layout, 7);
  const TensorSpec& down = layout.tensors()[layout.layer(1) + Layout::Down];
  weights.values().data()[down.offset + 3] = std::numeric_limits<float>::infinity();
  const auto read = InferenceWeights::from_image(layout, bytes_of(published(weights)));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().context,
            "tensor 'model.layers.1.mlp.down_proj.weight': expected finite values, found inf at "
            "element 3");
}

TEST(Bfloat16Trainer, ContinuesFromACheckpointAsIfItHadNotStopped) {
  const Layout layout = layout_of(ComputeType::Bfloat16);
  trainer::TorchEngineOptions options;
  options.model = layout.model();
  options.vocabulary = tests::kVocabulary;
  options.algorithm.learning_rate = 1e-6;  // Steps far below the distance of neighbors in bfloat16.
  options.algorithm.kl = 0;
  const auto straight = trainer::make_torch_engine(options, Weights::random(layout, 7));
  ASSERT_TRUE(straight->update(tests::training_batch(1)));
  const test::TemporaryFolder folder;
  ASSERT_TRUE(straight->save(folder.path()));
  const auto resumed = trainer::make_torch_engine(options, Weights::random(layout, 8));
  ASSERT_TRUE(resumed->load(folder.path()));
  for (std::uint64_t step = 2; step < 5; ++step) {
    const auto batch = tests::training_batch(step);
    EXPECT_EQ(straight->update(batch).value().loss, resumed->update(batch).value().loss);
  }
  ASSERT_TRUE(straight->save(folder.path()));
  const auto kept = read_file(folder.path() / "model.safetensors").value();
  ASSERT_TRUE(resumed->save(folder.path()));
  EXPECT_EQ(read_file(folder.path() / "model.safetensors").value(), kept);
}

}  // namespace
}  // namespace temper::actors
