#include "sim_hw/operators/operators.hpp"

#include "sim_hw/catalog/catalog.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace temper::sim_hw {
namespace {

Device device_named(std::string_view name) {
  Catalog catalog = Catalog::shipped();
  const auto spec = catalog.hardware(name);
  EXPECT_TRUE(spec) << spec.error().context;
  return make_device(**spec);
}

const std::vector<double> kSizes{1, 7, 63, 64, 65, 128, 129, 500, 1024, 4096, 4097, 16384};

TEST(Gemm, OfOneRowCostsItsWeightsTrafficAndALatency) {
  const Device d = device_named("nvidia-h200");
  const double n = 8192;
  const double k = 4096;
  // One tile of 64 rows multiplies in a third of the time in which the weights are read; in the
  // fourth-power mean that adds (1/3)^4 / 4 = 0.3 %.
  const double traffic = 2 * n * k / d.bandwidth;
  const double latency = d.k.matmul_latency + d.k.matmul_depth_latency;
  EXPECT_NEAR(gemm_seconds(d, Heat::Sustained, 1, n, k), latency + traffic, 0.01 * traffic);
}

TEST(Gemm, ApproachesTheSustainedRateWhenLarge) {
  const Device d = device_named("nvidia-h200");
  const double size = 32768;
  const double rate = 2 * size * size * size / gemm_seconds(d, Heat::Sustained, size, size, size);
  const double sustained = d.k.matmul_sustained * d.matrix_peak;
  EXPECT_LT(rate, sustained);
  EXPECT_GT(rate, 0.97 * sustained);
  // Alone it begins at the boost rate: faster, yet as slow when it runs long.
  EXPECT_LT(gemm_seconds(d, Heat::Isolated, 2048, 2048, 2048),
            gemm_seconds(d, Heat::Sustained, 2048, 2048, 2048));
  EXPECT_NEAR(gemm_seconds(d, Heat::Isolated, size, size, size) /
                  gemm_seconds(d, Heat::Sustained, size, size, size),
              1,
              0.01);
}

TEST(Gemm, CostsAsMuchForEveryRowCountOfOneTileButForTraffic) {
  const Device d = device_named("nvidia-h200");
  EXPECT_EQ(padded_rows(1), 64);
  EXPECT_EQ(padded_rows(64), 64);
  EXPECT_EQ(padded_rows(65), 128);
  EXPECT_EQ(padded_rows(129), 192);
  const double more = gemm_seconds(d, Heat::Sustained, 192, 4096, 4096) -
                      gemm_seconds(d, Heat::Sustained, 129, 4096, 4096);
  EXPECT_LE(more, 63 * 2 * (4096 + 4096) / d.bandwidth);
}

TEST(Gemm, IsMonotonicInEverySize) {
  for (const char* name : {"nvidia-h200", "nvidia-a100", "cm384"}) {
    const Device d = device_named(name);
    for (const Heat heat : {Heat::Isolated, Heat::Sustained}) {
      for (const double other : {1.0, 300.0, 8192.0}) {
        for (std::size_t i = 1; i < kSizes.size(); ++i) {
          const double a = kSizes[i - 1];
          const double b = kSizes[i];
          EXPECT_LE(gemm_seconds(d, heat, a, other, other), gemm_seconds(d, heat, b, other, other));
          EXPECT_LT(gemm_seconds(d, heat, other, a, other), gemm_seconds(d, heat, other, b, other));
          EXPECT_LT(gemm_seconds(d, heat, other, other, a), gemm_seconds(d, heat, other, other, b));
          EXPECT_LE(gemm_backward_seconds(d, heat, a, other, other),
                    gemm_backward_seconds(d, heat, b, other, other));
        }
      }
    }
  }
}

TEST(Attention, IsMonotonicInBatchAndLength) {
  const AttentionShape shape{32, 8, 128, 128};
  for (const char* name : {"nvidia-h200", "cm384"}) {
    const Device d = device_named(name);
    for (std::size_t i = 1; i < kSizes.size(); ++i) {
      const double a = kSizes[i - 1];
      const double b = kSizes[i];
      EXPECT_LT(attention_decode_seconds(d, shape, a, 100),
                attention_decode_seconds(d, shape, b, 100));
      EXPECT_LT(attention_decode_seconds(d, shape, 100, a),
                attention_decode_seconds(d, shape, 100, b));
      EXPECT_LT(latent_decode_seconds(d, 128, 512, 64, a, 100),
                latent_decode_seconds(d, 128, 512, 64, b, 100));
      EXPECT_LT(latent_decode_seconds(d, 128, 512, 64, 100, a),
                latent_decode_seconds(d, 128, 512, 64, 100, b));
      EXPECT_LT(attention_prefill_seconds(d, shape, a, 100),
                attention_prefill_seconds(d, shape, b, 100));
      EXPECT_LT(attention_prefill_seconds(d, shape, 4, a),
                attention_prefill_seconds(d, shape, 4, b));
    }
  }
}

TEST(Attention, OverALongCacheReadsItAtTheDecodeBandwidth) {
  const Device d = device_named("nvidia-h200");
  // 64 sequences of 32768 tokens, 8 heads, keys and values of 128 in two bytes: 8.6 GB.
  const double bytes = 64.0 * 32768 * 8 * (128 + 128) * 2;
  EXPECT_NEAR(attention_decode_seconds(d, {64, 8, 128, 128}, 64, 32768),
              bytes / d.decode_bandwidth,
              0.01 * bytes / d.decode_bandwidth);
}

TEST(Formats, RunAtTheLowPeakOnlyWhereTheHardwareComputesWithThem) {
  Catalog catalog = Catalog::shipped();
  const DieSpec& hopper = (*catalog.hardware("nvidia-h100"))->die;
  const DieSpec& ascend = (*catalog.hardware("cm384"))->die;
  EXPECT_NEAR(matrix_format(WeightFormat::Fp8, hopper).speed, 2, 0.01);
  EXPECT_EQ(matrix_format(WeightFormat::Fp8, ascend).speed, 1);  // Only INT8.
  EXPECT_GT(matrix_format(WeightFormat::Int8, ascend).speed, 2);
  EXPECT_EQ(matrix_format(WeightFormat::W4a16, hopper).speed, 1);
  EXPECT_LT(matrix_format(WeightFormat::W4a16, hopper).weight_bytes, 0.6);
}

TEST(Formats, EightBitsSaveReadingWeightsAndCostAConversion) {
  Device d = device_named("nvidia-h100");
  Catalog catalog = Catalog::shipped();
  const MatrixFormat eight =
      matrix_format(WeightFormat::Fp8, (*catalog.hardware("nvidia-h100"))->die);
  EXPECT_LT(gemm_seconds(d, Heat::Sustained, 8192, 8192, 8192, eight),
            0.6 * gemm_seconds(d, Heat::Sustained, 8192, 8192, 8192));
  EXPECT_GT(gemm_seconds(d, Heat::Sustained, 1, 64, 64, eight),
            gemm_seconds(d, Heat::Sustained, 1, 64, 64));
}

TEST(Attention, OfSeveralQueriesReadsTheCacheOnce) {
  const Device d = device_named("nvidia-h200");
  const AttentionShape shape{32, 8, 128, 128};
  EXPECT_EQ(attention_verify_seconds(d, shape, 1, 32768, 1),
            attention_decode_seconds(d, shape, 1, 32768));
  EXPECT_LT(attention_verify_seconds(d, shape, 1, 32768, 4),
            1.1 * attention_decode_seconds(d, shape, 1, 32768));
}

/// Means over draws of top_k distinct experts per token, popularity rank^-zipf.
Routing counted_routing(std::size_t experts, int top_k, int tokens, double zipf, int draws) {
  std::vector<double> weight(experts);
  for (std::size_t i = 0; i < experts; ++i)
    weight[i] = std::pow(static_cast<double>(i + 1), -zipf);
  std::mt19937_64 random(20240229);
  // The k smallest of exponential variates with rates w are k draws without replacement.
  std::vector<std::pair<double, std::size_t>> race(experts);
  Routing out;
  for (int draw = 0; draw < draws; ++draw) {
    std::vector<int> load(experts, 0);
    for (int token = 0; token < tokens; ++token) {
      for (std::size_t i = 0; i < experts; ++i) {
        const double uniform = (static_cast<double>(random() >> 11U) + 0.5) * 0x1p-53;
        race[i] = {-std::log(uniform) / weight[i], i};
      }
      std::nth_element(race.begin(), race.begin() + (top_k - 1), race.end());
      for (int j = 0; j < top_k; ++j)
        ++load[race[static_cast<std::size_t>(j)].second];
    }
    for (const int rows : load) {
      out.experts += rows > 0 ? 1 : 0;
      out.tiles += (rows + 127) / 128;
    }
  }
  out.experts /= draws;
  out.tiles /= draws;
  return out;
}

struct RoutingCase {
  std::size_t experts;
  int top_k;
  int tokens;
  double zipf;
};

// Tiles are smoothed: where every expert has, for sure, a little less than whole tiles, the count
// has steps that the model does not. The cases keep away from them.
TEST(Routing, MatchesExpertsAndTilesOfRandomDraws) {
  for (const RoutingCase& c : {RoutingCase{128, 8, 4, 0.0},
                               RoutingCase{128, 8, 64, 0.5},
                               RoutingCase{128, 8, 64, 1.0},
                               RoutingCase{128, 8, 512, 0.0},
                               RoutingCase{128, 8, 6144, 0.5},
                               RoutingCase{128, 8, 2048, 1.0},
                               RoutingCase{256, 8, 256, 0.8},
                               RoutingCase{64, 6, 2048, 0.5}}) {
    const Routing model = skewed_routing(static_cast<double>(c.experts), c.top_k, c.tokens, c.zipf);
    const Routing count =
        counted_routing(c.experts, c.top_k, c.tokens, c.zipf, c.tokens < 1000 ? 40 : 8);
    EXPECT_NEAR(model.experts / count.experts, 1, 0.03)
        << c.experts << " " << c.top_k << " " << c.tokens << " " << c.zipf;
    EXPECT_NEAR(model.tiles / count.tiles, 1, 0.03)
        << c.experts << " " << c.top_k << " " << c.tokens << " " << c.zipf;
  }
}

TEST(Routing, IsBalancedWithoutSkew) {
  for (const double tokens : {1.0, 17.0, 512.0, 10000.0}) {
    const Routing skewed = skewed_routing(128, 8, tokens, 0);
    const Routing nearly = skewed_routing(128, 8, tokens, 1e-9);
    const Routing balanced = balanced_routing(128, 8, tokens);
    EXPECT_EQ(skewed.experts, balanced.experts);
    EXPECT_EQ(skewed.tiles, balanced.tiles);
    EXPECT_NEAR(nearly.experts, balanced.experts, 1e-4 * balanced.experts);
    EXPECT_NEAR(nearly.tiles, balanced.tiles, 1e-4 * balanced.tiles);
  }
}

TEST(Routing, TouchesAtMostAllExperts) {
  for (const double tokens : {1.0, 1e3, 1e7}) {
    EXPECT_LE(balanced_routing(60, 4, tokens).experts, 60);
    EXPECT_LE(skewed_routing(60, 4, tokens, 1.2).experts, 60);
    EXPECT_EQ(skewed_routing(4, 4, tokens, 1.2).experts, 4);
  }
  EXPECT_NEAR(balanced_routing(128, 8, 1).experts, 8, 1e-9);
}

TEST(GroupedGemm, OfFewTokensReadsTheTouchedExpertsOnce) {
  const Device d = device_named("nvidia-h200");
  const Routing routing = balanced_routing(128, 8, 16);
  const double weights = routing.experts * 3 * 2048 * 768 * 2 / d.grouped_bandwidth;
  const double seconds = grouped_seconds(d, {2048, 768}, routing, 16 * 8) - d.k.routing_latency;
  EXPECT_GT(seconds, weights);
  EXPECT_LT(seconds, 1.2 * weights);
}

}  // namespace
}  // namespace temper::sim_hw
