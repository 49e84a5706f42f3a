#include "actors/policy/transformer.hpp"

#include "actors/policy/decoder.hpp"
#include "tests/support/tiny_policy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace temper::actors {
namespace {

using tests::kVocabulary;
using Vector = std::vector<double>;

/// A reference implementation in double precision, one sequence at a time, that shares only names
/// and places of tensors with the code under test.
class Textbook {
 public:
  explicit Textbook(const Weights& weights) : w_(weights), m_(weights.layout().model()) {}

  /// Returns the logits after every token.
  std::vector<Vector> logits(const std::vector<std::int32_t>& tokens) {
    std::vector<Vector> x;
    for (const std::int32_t t : tokens) {
      const float* row = w_.tensor(w_.layout().embedding()) + t * m_.hidden;
      x.emplace_back(row, row + m_.hidden);
    }
    for (std::int32_t i = 0; i < m_.layers; ++i)
      layer(i, x);
    for (Vector& row : x)
      row = times(w_.layout().head(), norm(w_.layout().norm(), row));
    return x;
  }

 private:
  Vector norm(std::size_t tensor, const Vector& x) const {
    double squares = 0;
    for (const double v : x)
      squares += v * v;
    const double rms = std::sqrt(squares / static_cast<double>(x.size()) + m_.norm_epsilon);
    Vector y;
    for (std::size_t i = 0; i < x.size(); ++i)
      y.push_back(x[i] / rms * static_cast<double>(w_.tensor(tensor)[i]));
    return y;
  }

  Vector times(std::size_t tensor, const Vector& x) const {
    Vector y;
    for (std::int64_t r = 0; r < w_.layout().tensors()[tensor].shape[0]; ++r) {
      double sum = 0;
      for (std::size_t i = 0; i < x.size(); ++i)
        sum += x[i] *
               static_cast<double>(w_.tensor(tensor)[static_cast<std::size_t>(r) * x.size() + i]);
      y.push_back(sum);
    }
    return y;
  }

  /// The `llama3` scaling by wavelength: short ones are unchanged, long ones are multiplied by the
  /// factor.
  double frequency(double f) const {
    if (!m_.rope_scaling)
      return f;
    const RopeScaling& s = *m_.rope_scaling;
    const auto original = static_cast<double>(s.original_context.count());
    const double wavelength = 2 * 3.14159265358979323846 / f;
    if (wavelength < original / s.high_freq_factor)
      return f;
    if (wavelength > original / s.low_freq_factor)
      return f / s.factor;
    const double smooth =
        (original / wavelength - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor);
    return (1 - smooth) * f / s.factor + smooth * f;
  }

  /// Head `h` of a row, normalized by a tensor (if any) and rotated by position `p`.
  Vector head(const Vector& row, std::int32_t h, std::size_t p, std::size_t norm_by) const {
    const std::int32_t dim = m_.head_size();
    Vector y(row.begin() + h * dim, row.begin() + (h + 1) * dim);
    if (m_.architecture == Architecture::Qwen3)
      y = norm(norm_by, y);
    for (std::int32_t i = 0; i < dim / 2; ++i) {
      const double angle =
          static_cast<double>(p) * frequency(std::pow(m_.rope_base, -2.0 * i / dim));
      const auto a = static_cast<std::size_t>(i);
      const auto b = static_cast<std::size_t>(i + dim / 2);
      const double low = y[a];
      y[a] = low * std::cos(angle) - y[b] * std::sin(angle);
      y[b] = y[b] * std::cos(angle) + low * std::sin(angle);
    }
    return y;
  }

  Vector attend(const std::vector<Vector>& qkv, std::size_t row, std::size_t base) const {
    const std::int32_t dim = m_.head_size();
    Vector out;
    for (std::int32_t h = 0; h < m_.heads; ++h) {
      const std::int32_t kv = m_.heads + h / (m_.heads / m_.kv_heads);
      const Vector q = head(qkv[row], h, row, base + Layout::QueryNorm);
      Vector p;
      double sum = 0;
      for (std::size_t j = 0; j <= row; ++j) {
        const Vector k = head(qkv[j], kv, j, base + Layout::KeyNorm);
        double score = 0;
        for (std::size_t i = 0; i < q.size(); ++i)
          score += q[i] * k[i];
        p.push_back(std::exp(score / std::sqrt(dim)));
        sum += p.back();
      }
      for (std::int32_t i = 0; i < dim; ++i) {
        double value = 0;
        for (std::size_t j = 0; j <= row; ++j)
          value += p[j] / sum * qkv[j][static_cast<std::size_t>((kv + m_.kv_heads) * dim + i)];
        out.push_back(value);
      }
    }
    return out;
  }

  void layer(std::int32_t i, std::vector<Vector>& x) const {
    const std::size_t base = w_.layout().layer(i);
    std::vector<Vector> qkv;
    for (const Vector& row : x)
      qkv.push_back(times(base + Layout::Qkv, norm(base + Layout::AttentionNorm, row)));
    if (m_.architecture == Architecture::Qwen2) {
      for (Vector& row : qkv) {
        for (std::size_t j = 0; j < row.size(); ++j)
          row[j] += static_cast<double>(w_.tensor(base + Layout::QkvBias)[j]);
      }
    }
    for (std::size_t r = 0; r < x.size(); ++r) {
      add(x[r], times(base + Layout::Out, attend(qkv, r, base)));
      const Vector both = times(base + Layout::GateUp, norm(base + Layout::FfnNorm, x[r]));
      Vector inner;
      for (std::size_t j = 0; j < both.size() / 2; ++j)
        inner.push_back(both[j] / (1 + std::exp(-both[j])) * both[j + both.size() / 2]);
      add(x[r], times(base + Layout::Down, inner));
    }
  }

  static void add(Vector& x, const Vector& y) {
    for (std::size_t i = 0; i < x.size(); ++i)
      x[i] += y[i];
  }

  const Weights& w_;
  const ModelConfig m_;
};

double logprob(const Vector& logits, std::int32_t token, double temperature) {
  double sum = 0;
  for (const double z : logits)
    sum += std::exp(z / temperature);
  return logits[static_cast<std::size_t>(token)] / temperature - std::log(sum);
}

struct Sequence {
  std::vector<std::int32_t> prompt;
  std::vector<std::int32_t> response;
  std::vector<std::int32_t> candidates{};
};

/// Two prompts; the first has three responses of different lengths, one of a single token. Two of
/// the responses have candidates, two and three at each token.
std::vector<Sequence> sequences() {
  Random random(3, "sequences");
  const auto a = tests::random_tokens(random, 5);
  const auto b = tests::random_tokens(random, 3);
  std::vector<Sequence> list;
  list.push_back({a, tests::random_tokens(random, 4)});
  list.push_back({a, tests::random_tokens(random, 1)});
  list.push_back({a, tests::random_tokens(random, 6)});
  list.push_back({b, tests::random_tokens(random, 3)});
  list[0].candidates = tests::random_tokens(random, 2 * 4);
  list[2].candidates = tests::random_tokens(random, 3 * 6);
  return list;
}

Pack packed(const std::vector<Sequence>& list) {
  Pack pack;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (i == 0 || list[i].prompt != list[i - 1].prompt)
      pack.add_prompt(list[i].prompt);
    pack.add_response(list[i].response);
    pack.add_candidates(list[i].candidates);
  }
  return pack;
}

/// Log-probs of all responses, concatenated, and then those of all candidates.
Vector textbook_logprobs(const Weights& weights,
                         const std::vector<Sequence>& list,
                         double temperature) {
  Vector result, of_candidates;
  for (const Sequence& s : list) {
    auto tokens = s.prompt;
    tokens.insert(tokens.end(), s.response.begin(), s.response.end());
    const auto logits = Textbook(weights).logits(tokens);
    const std::size_t each = s.candidates.size() / s.response.size();
    for (std::size_t i = 0; i < s.response.size(); ++i) {
      const Vector& own = logits[s.prompt.size() + i - 1];
      result.push_back(logprob(own, s.response[i], temperature));
      for (std::size_t k = 0; k < each; ++k)
        of_candidates.push_back(logprob(own, s.candidates[i * each + k], temperature));
    }
  }
  result.insert(result.end(), of_candidates.begin(), of_candidates.end());
  return result;
}

/// One model of each architecture with its variations. Norms and biases are random, so that
/// omitting one is noticed.
Weights any_weights(Architecture architecture) {
  ModelConfig model = tests::tiny_model();
  model.architecture = architecture;
  model.norm_epsilon = 1e-3;
  if (architecture == Architecture::Qwen3)
    model.head_dim = 6;
  if (architecture == Architecture::Llama) {  // One angle stays, two are in between, one is slow.
    model.head_dim = 8;
    model.rope_base = 100;
    model.rope_scaling = RopeScaling{4, 1, 4, Tokens(64)};
  }
  model.tie_embeddings = architecture != Architecture::Llama;
  Weights weights = Weights::random(Layout::make(model, kVocabulary).value(), 7);
  Random random(11, "norms and biases");
  for (const TensorSpec& tensor : weights.layout().tensors()) {
    if (tensor.shape.size() != 1)
      continue;
    for (std::int64_t i = 0; i < tensor.elements(); ++i)
      weights.values().data()[tensor.offset + i] += static_cast<float>(0.3 * random.normal());
  }
  return weights;
}

class Architectures : public ::testing::TestWithParam<Architecture> {};
INSTANTIATE_TEST_SUITE_P(Transformer,
                         Architectures,
                         ::testing::Values(Architecture::Llama,
                                           Architecture::Qwen2,
                                           Architecture::Qwen3),
                         [](const auto& of) { return std::string(name_of(of.param)); });

TEST_P(Architectures, AgreeWithATextbookImplementation) {
  Weights weights = any_weights(GetParam());
  const auto list = sequences();
  const Pack pack = packed(list);
  EXPECT_EQ(pack.rows(), 5 + 3 + 0 + 5 + 3 + 2) << "a shared prompt is laid once";
  for (const double temperature : {1.0, 0.7}) {
    const Vector expected = textbook_logprobs(weights, list, temperature);
    Transformer network(weights);
    const auto got = network.forward(pack, temperature, Graph::Discard);
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < got.size(); ++i)
      EXPECT_NEAR(got[i], expected[i], 2e-5) << "target " << i;
  }
}

TEST_P(Architectures, ScoreTheMostLikelyTokensOfATextbookImplementation) {
  Weights weights = any_weights(GetParam());
  auto list = sequences();
  for (Sequence& s : list)
    s.candidates.clear();
  const Vector targets = textbook_logprobs(weights, list, 0.7);
  Transformer network(weights);
  for (const std::int32_t k : {0, 1, 3, kVocabulary}) {
    const Transformer::Scores scores = network.score(packed(list), 0.7, k);
    ASSERT_EQ(scores.logprobs.size(), targets.size());
    ASSERT_EQ(scores.top.ids.size(), targets.size() * static_cast<std::size_t>(k));
    ASSERT_EQ(scores.top.logprobs.size(), scores.top.ids.size());
    std::size_t at = 0;
    for (const Sequence& s : list) {
      auto tokens = s.prompt;
      tokens.insert(tokens.end(), s.response.begin(), s.response.end());
      const auto logits = Textbook(weights).logits(tokens);
      for (std::size_t t = 0; t < s.response.size(); ++t) {
        Vector expected;
        for (std::int32_t token = 0; token < kVocabulary; ++token)
          expected.push_back(logprob(logits[s.prompt.size() + t - 1], token, 0.7));
        Vector sorted = expected;
        std::ranges::sort(sorted, std::greater());
        for (std::int32_t i = 0; i < k; ++i, ++at) {
          EXPECT_NEAR(scores.top.logprobs[at], sorted[static_cast<std::size_t>(i)], 2e-5);
          EXPECT_NEAR(expected[static_cast<std::size_t>(scores.top.ids[at])],
                      sorted[static_cast<std::size_t>(i)],
                      2e-5);
        }
      }
    }
    for (std::size_t i = 0; i < targets.size(); ++i)
      EXPECT_NEAR(scores.logprobs[i], targets[i], 2e-5);
  }
}

TEST_P(Architectures, HaveTheGradientsOfATextbookImplementation) {
  Weights weights = any_weights(GetParam());
  const auto list = sequences();
  const Pack pack = packed(list);
  Random random(1, "derivatives");
  std::vector<float> d;
  for (std::size_t i = 0; i < pack.targets().size() + pack.candidates().size(); ++i)
    d.push_back(static_cast<float>(random.normal()));
  Transformer network(weights);
  network.forward(pack, 0.8, Graph::Keep);
  network.backward(d);
  const auto loss = [&] {
    const Vector p = textbook_logprobs(weights, list, 0.8);
    double sum = 0;
    for (std::size_t i = 0; i < p.size(); ++i)
      sum += p[i] * static_cast<double>(d[i]);
    return sum;
  };
  for (const TensorSpec& tensor : weights.layout().tensors()) {
    for (int check = 0; check < 6; ++check) {
      const std::int64_t at =
          tensor.offset +
          static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(tensor.elements())));
      float& value = weights.values().data()[at];
      const float before = value;
      constexpr float kStep = 1e-3f;
      value = before + kStep;
      const double up = loss();
      value = before - kStep;
      const double down = loss();
      value = before;
      const double expected = (up - down) / (2.0 * static_cast<double>(kStep));
      EXPECT_NEAR(network.gradients().data()[at], expected, 2e-3 + 2e-3 * std::abs(expected))
          << tensor.name << " at " << at - tensor.offset;
    }
  }
}

TEST(Transformer, BackwardAddsToTheGradients) {
  Weights weights = tests::tiny_weights();
  const Pack pack = packed(sequences());
  const std::vector<float> d(pack.targets().size() + pack.candidates().size(), 1.0f);
  Transformer network(weights);
  network.forward(pack, 1.0, Graph::Keep);
  network.backward(d);
  const FloatBuffer once = network.gradients().clone();
  network.forward(pack, 1.0, Graph::Keep);
  network.backward(d);
  for (std::int64_t i = 0; i < once.size(); ++i)
    EXPECT_FLOAT_EQ(network.gradients().data()[i], 2 * once.data()[i]);
}

TEST_P(Architectures, CachedDecodingEqualsTheFullForward) {
  Weights weights = any_weights(GetParam());
  Random random(5, "tokens");
  const auto tokens = tests::random_tokens(random, 12);
  const auto expected = Textbook(weights).logits(tokens);
  Decoder decoder(weights.layout(), 3);
  std::vector<DecoderRow> prefill;
  for (std::int32_t i = 0; i < 7; ++i)
    prefill.push_back({tokens[static_cast<std::size_t>(i)], 2, i});
  const auto first = decoder.forward(weights, prefill, Decoder::Output::Logits);
  for (std::size_t i = 0; i < first.size(); ++i)
    EXPECT_NEAR(first[i], expected[i / kVocabulary][i % kVocabulary], 2e-5);
  decoder.copy_slot(2, 0, 7);
  for (std::int32_t i = 7; i < 12; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const std::vector<DecoderRow> rows{{tokens[at], 2, i}, {tokens[at], 0, i}};
    const auto logits = decoder.forward(weights, rows, Decoder::Output::Logits);
    for (std::size_t v = 0; v < kVocabulary; ++v) {
      EXPECT_NEAR(logits[v], expected[at][v], 2e-5);
      EXPECT_NEAR(logits[kVocabulary + v], expected[at][v], 2e-5) << "from the copied slot";
    }
  }
}

}  // namespace
}  // namespace temper::actors
