// Rows that several threads compute are those that one computes, to the last bit.
#include "actors/policy/internal/attention.hpp"
#include "actors/policy/sampler.hpp"
#include "actors/policy/transformer.hpp"
#include "core/random.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace temper::actors {
namespace {

std::vector<float> random_floats(std::int64_t n, std::uint64_t seed) {
  Random random(seed, "floats");
  std::vector<float> out;
  for (std::int64_t i = 0; i < n; ++i)
    out.push_back(static_cast<float>(random.normal()));
  return out;
}

/// Four prompts of 9 rows with three responses of 5 to 7 rows each, as a trainer packs them.
struct Attended {
  static constexpr std::int64_t kPrompt = 9;

  explicit Attended(const AttentionShape& s) : shape(s), layout{width(), s.kv_heads * s.head_dim} {
    for (int prompt = 0; prompt < 4; ++prompt) {
      const std::int64_t first = rows;
      families.push_back(first);
      add(0, 0, kPrompt);
      for (std::int64_t length = 5; length < 8; ++length)
        add(first, kPrompt, length);
    }
    qkv = random_floats(rows * width(), 1);
    d_out = random_floats(rows * queries(), 2);
    out.resize(d_out.size());
    log_sums.resize(static_cast<std::size_t>(rows * shape.heads));
    d_qkv.resize(qkv.size());
  }

  std::int64_t queries() const { return shape.heads * shape.head_dim; }
  std::int64_t width() const { return queries() + 2 * shape.kv_heads * shape.head_dim; }

  void add(std::int64_t prefix, std::int64_t prefix_rows, std::int64_t length) {
    for (std::int64_t own = 1; own <= length; ++own)
      sequence.push_back({prefix, prefix_rows, rows, own});
    rows += length;
  }

  std::vector<AttentionPair> pairs() {
    std::vector<AttentionPair> list;
    for (std::int64_t row = 0; row < rows; ++row) {
      const auto& s = sequence[static_cast<std::size_t>(row)];
      AttentionPair pair;
      pair.query = {.query = qkv.data() + row * width(),
                    .runs = {{qkv.data() + s.prefix * width() + queries(), s.prefix_rows},
                             {qkv.data() + s.begin * width() + queries(), s.own}},
                    .out = out.data() + row * queries(),
                    .log_sums = log_sums.data() + row * shape.heads};
      pair.gradient = {.d_out = d_out.data() + row * queries(),
                       .d_query = d_qkv.data() + row * width(),
                       .d_keys = {d_qkv.data() + s.prefix * width() + queries(),
                                  d_qkv.data() + s.begin * width() + queries()}};
      list.push_back(pair);
    }
    return list;
  }
  std::vector<AttentionQuery> all_queries() {
    std::vector<AttentionQuery> list;
    for (const AttentionPair& pair : pairs())
      list.push_back(pair.query);
    return list;
  }

  struct Row {
    std::int64_t prefix = 0, prefix_rows = 0, begin = 0, own = 0;
  };
  AttentionShape shape;
  KeyLayout layout;
  std::int64_t rows = 0;
  std::vector<std::int64_t> families;
  std::vector<Row> sequence;
  std::vector<float> qkv, d_out, out, log_sums, d_qkv;
};

class Threads : public ::testing::Test {
 protected:
  Threads() { set_compute_threads(3); }
  ~Threads() override { set_compute_threads(1); }
};

TEST_F(Threads, ComputeTheAttentionOfRowsAndItsGradients) {
  for (const AttentionShape& shape :
       {AttentionShape{8, 8, 64}, {9, 3, 64}, {16, 2, 32}, {6, 1, 48}}) {
    Attended one(shape);
    std::vector<float> scratch(64);
    attend(one.all_queries(), shape, one.layout, scratch);
    for (const AttentionPair& pair : one.pairs())
      attend_backward(pair.query, pair.gradient, shape, one.layout);
    Attended several(shape);
    attend_all(several.all_queries(), shape, several.layout);
    attend_all_backward(several.pairs(), several.families, shape, several.layout);
    EXPECT_EQ(one.out, several.out);
    EXPECT_EQ(one.log_sums, several.log_sums);
    EXPECT_EQ(one.d_qkv, several.d_qkv);
  }
}

TEST_F(Threads, SampleTheTokensOfRows) {
  constexpr std::int64_t kRows = 40, kWidth = 4000;
  const Sampler sampler(0.8, 0.9);
  auto logits = random_floats(kRows * kWidth, 3);
  std::vector<Choice> choices;
  std::vector<SampledToken> expected;
  for (std::int64_t row = 0; row < kRows; ++row) {
    choices.push_back({.greedy = row % 3 == 0, .uniform = sampling_uniform(1, ResponseId(2), row)});
    auto own = std::vector(logits.begin() + row * kWidth, logits.begin() + (row + 1) * kWidth);
    expected.push_back(choices.back().greedy ? sampler.likeliest(own)
                                             : sampler.draw(own, choices.back().uniform));
  }
  const auto sampled = sampler.sample(logits, choices);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(sampled[i].token, expected[i].token);
    EXPECT_EQ(sampled[i].logprob, expected[i].logprob);
  }
}

TEST_F(Threads, SampleNothingWithoutRows) {
  EXPECT_TRUE(Sampler(1.0, 1.0).sample({}, {}).empty());
}

}  // namespace
}  // namespace temper::actors
