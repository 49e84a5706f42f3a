#include "sim_hw/catalog/catalog.hpp"
#include "sim_hw/model/parameters.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace temper::sim_hw {
namespace {

/// Billions with two decimals, as in published tables.
double printed(std::int64_t parameters) {
  return std::round(static_cast<double>(parameters) / 1e7) / 100;
}

struct PublishedSize {
  const char* model;
  double total;   ///< Computed from the same dimensions elsewhere, to the digits printed there.
  double active;  ///< Active parameters per token; 0 for dense models.
};

// Except for GPT models, the counts include embeddings and norms and exclude MTP modules.
constexpr PublishedSize kComputed[] = {{"deepseek-v3", 671.03, 37.55},
                                       {"pangu-ultra-moe-718b", 719.09, 40.37},
                                       {"qwen3-235b-a22b", 235.09, 22.19},
                                       {"qwen3-30b-a3b", 30.53, 3.35},
                                       {"qwen3-32b", 32.76, 0},
                                       {"qwen3-8b", 8.19, 0},
                                       {"qwen2.5-32b", 32.76, 0},
                                       {"qwen2.5-7b", 7.62, 0},
                                       {"qwen2.5-1.5b", 1.54, 0},
                                       {"qwen2.5-0.5b", 0.49, 0},
                                       {"llama-3.1-8b", 8.03, 0},
                                       {"llama-3.1-70b", 70.55, 0},
                                       {"llama-3.1-405b", 405.85, 0},
                                       {"kimi-k2", 1026.41, 32.86},
                                       {"pangu-pro-moe-v2-72b", 73.76, 15.15}};

// For GPT models, papers count the matrices of the layers: 12 x layers x hidden^2.
constexpr PublishedSize kMatrices[] = {{"megatron-22b", 21.74, 0},
                                       {"gpt3-175b", 173.95, 0},
                                       {"turing-nlg-530b", 528.48, 0},
                                       {"megatron-1t", 1006.63, 0}};

// From model cards and papers; active counts exclude the input embedding, which is a look-up.
constexpr PublishedSize kStated[] = {
    {"deepseek-v3", 671, 37},     {"pangu-ultra-moe-718b", 718, 39},
    {"qwen3-235b-a22b", 235, 22}, {"qwen3-30b-a3b", 30.5, 3},
    {"kimi-k2", 1000, 32},        {"pangu-pro-moe-v2-72b", 72, 0},
    {"qwen3-0.6b", 0.6, 0},       {"qwen3-1.7b", 1.7, 0},
    {"qwen3-4b", 4, 0},           {"qwen3-8b", 8.2, 0},
    {"qwen3-14b", 14.8, 0},       {"qwen3-32b", 32.8, 0},
    {"qwen2.5-0.5b", 0.49, 0},    {"qwen2.5-1.5b", 1.54, 0},
    {"qwen2.5-3b", 3.09, 0},      {"qwen2.5-7b", 7.61, 0},
    {"qwen2.5-14b", 14.7, 0},     {"qwen2.5-32b", 32.5, 0},
    {"qwen2.5-72b", 72.7, 0},     {"llama-3.1-8b", 8, 0},
    {"llama-3.1-70b", 70, 0},     {"llama-3.1-405b", 405, 0},
    {"llama-3.2-1b", 1.23, 0},    {"llama-3.2-3b", 3.21, 0},
    {"megatron-22b", 22, 0},      {"gpt3-175b", 175, 0},
    {"turing-nlg-530b", 530, 0},  {"megatron-1t", 1008, 0}};

class Models : public testing::Test {
 protected:
  const ModelSpec& model(const char* name) {
    const auto found = catalog_.model(name);
    EXPECT_TRUE(found) << found.error().context;
    return **found;
  }
  Catalog catalog_{std::string(TEMPER_SOURCE_DIR) + "/configs"};
};

TEST_F(Models, MatchIndependentParameterCounts) {
  for (const PublishedSize& expected : kComputed) {
    const ModelSpec& spec = model(expected.model);
    EXPECT_DOUBLE_EQ(printed(count_parameters(spec).total()), expected.total) << expected.model;
    if (expected.active > 0) {
      EXPECT_DOUBLE_EQ(printed(count_active_parameters(spec).total()), expected.active)
          << expected.model;
    }
  }
}

TEST_F(Models, MatchPublishedLayerMatricesOfGpt) {
  for (const PublishedSize& expected : kMatrices) {
    const ModelSpec& spec = model(expected.model);
    EXPECT_EQ(count_parameters(spec).matrices(), 12 * spec.layers * spec.hidden * spec.hidden);
    // 173.946 is printed as 173.95, 1006.633 as 1006.63.
    EXPECT_NEAR(static_cast<double>(count_parameters(spec).matrices()) / 1e9, expected.total, 0.005)
        << expected.model;
  }
}

TEST_F(Models, AreWithinThreePercentOfPublishedCounts) {
  for (const PublishedSize& stated : kStated) {
    const ModelSpec& spec = model(stated.model);
    const double total = static_cast<double>(count_parameters(spec).total()) / 1e9;
    EXPECT_NEAR(total / stated.total, 1, 0.03) << stated.model;
    if (stated.active > 0) {
      const double active =
          static_cast<double>(count_active_parameters(spec).without_lookup()) / 1e9;
      EXPECT_NEAR(active / stated.active, 1, 0.03) << stated.model;
    }
  }
}

TEST_F(Models, CountMtpModulesSeparately) {
  // DeepSeek-V3 states 11.5 B parameters for the module: one MoE layer and 2 h^2.
  const ParameterCount count = count_parameters(model("deepseek-v3"));
  EXPECT_NEAR(static_cast<double>(count.mtp) / 1e9, 11.5, 0.15);
  EXPECT_EQ(count.with_mtp(), count.total() + count.mtp);
}

}  // namespace
}  // namespace temper::sim_hw
