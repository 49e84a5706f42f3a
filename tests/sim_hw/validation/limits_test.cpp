// Error limits of the shipped descriptions and constants against configs/validation. A change
// that breaks one of them makes the model worse.
#include "sim_hw/calibration/fit.hpp"
#include "sim_hw/measurements/measurement.hpp"
#include "sim_hw/validation/statistics.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <string>

namespace temper::sim_hw {
namespace {

using Rows = std::vector<Comparison>;
using Filter = std::function<bool(const Row&)>;

std::vector<Row> rows_in(const Catalog& catalog, std::string_view file) {
  const auto rows = read_measurements(catalog.configs() / "validation" / file);
  EXPECT_TRUE(rows) << rows.error().context;
  return rows ? *rows : std::vector<Row>{};
}

Rows compared_rows(std::string_view file) {
  Catalog catalog = Catalog::shipped();
  return compare(catalog, rows_in(catalog, file));
}

Filter kind_and_metric(std::string_view kind, std::string_view metric) {
  return [=](const Row& row) { return row.kind == kind && row.metric == metric; };
}

/// Statistics of the rows that the filter accepts; each must have a prediction.
struct Errors {
  std::size_t rows = 0;
  double mean = 0;
  double largest = 0;
  std::string worst;
};
Errors errors_of(const Rows& all, const Filter& wanted) {
  Errors out;
  for (const Comparison& row : all) {
    if (!wanted(row.row))
      continue;
    EXPECT_TRUE(row.error()) << row.row.id << ": " << row.failure;
    const double error = std::abs(row.error().value_or(1));
    ++out.rows;
    out.mean += error;
    if (error >= out.largest) {
      out.largest = error;
      out.worst =
          fmt::format("{} {} {} {}", row.row.id, row.row.kind, row.row.params, row.row.metric);
    }
  }
  out.mean /= static_cast<double>(std::max<std::size_t>(1, out.rows));
  return out;
}

void expect_mean(const Errors& errors, std::size_t at_least, double limit) {
  EXPECT_GE(errors.rows, at_least);
  EXPECT_LE(errors.mean, limit) << "worst: " << errors.worst;
}
void expect_each(const Errors& errors, std::size_t at_least, double limit) {
  EXPECT_GE(errors.rows, at_least);
  EXPECT_LE(errors.largest, limit) << errors.worst;
}

constexpr std::array<std::string_view, 4> kSteps{
    "decode_step", "prefill", "logprob_pass", "train_step"};

TEST(Limits, StepsOfOneCardAreWithinFivePercentAndNoneAboveFifteen) {
  const Rows rows = compared_rows("h200.csv");
  for (const std::string_view kind : kSteps) {
    const Errors errors = errors_of(rows, kind_and_metric(kind, "time"));
    expect_mean(errors, 10, 0.05);
    expect_each(errors, 10, 0.15);
  }
}

TEST(Limits, PeakMemoryOfTrainingIsWithinFivePercent) {
  expect_each(
      errors_of(compared_rows("h200.csv"), kind_and_metric("train_step", "peak_memory")), 12, 0.05);
}

TEST(Limits, OperatorsOfOneCardAreWithinTenPercentOnAverage) {
  const Rows rows = compared_rows("h200.csv");
  for (const std::string_view kind : {"gemm", "attention_prefill", "attention_decode"})
    expect_mean(errors_of(rows, [&](const Row& row) { return row.kind == kind; }), 10, 0.10);
}

TEST(Limits, PhasesOfAnIterationOfOneCardAreWithinSevenPercent) {
  const Rows rows = compared_rows("h200.csv");
  const std::set<std::string, std::less<>> exact{
      "response_tokens", "longest", "decode_steps", "micro_batches", "padded_tokens"};
  const auto iteration = [](const Row& row) { return row.kind == "rl_iteration"; };
  expect_each(errors_of(rows, [&](const Row& row) { return iteration(row) && row.unit == "ms"; }),
              10,
              0.07);
  expect_each(
      errors_of(rows, [&](const Row& row) { return iteration(row) && exact.contains(row.metric); }),
      10,
      0);
}

/// As `temper calibrate` chooses them: every operator and step, no host link, no iteration.
std::vector<Row> rows_to_fit(const std::vector<Row>& rows) {
  std::set<std::string, std::less<>> kinds;
  for (const auto& area : {operator_kinds(), step_kinds()}) {
    for (const Kind& kind : area)
      kinds.emplace(kind.name);
  }
  kinds.erase("host_to_device");
  kinds.erase("device_to_host");
  std::vector<Row> out;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(out), [&](const Row& row) {
    return kinds.contains(row.kind);
  });
  return out;
}

TEST(Limits, StepsOfAModelThatTheFitHasNotSeenKeepTheSameLimits) {
#ifndef __OPTIMIZE__
  GTEST_SKIP() << "a fit per model: seconds in release builds, a minute in debug builds";
#endif
  Catalog catalog = Catalog::shipped();
  const std::vector<Row> rows = rows_to_fit(rows_in(catalog, "h200.csv"));
  const auto left = leave_one_model_out(catalog, "nvidia-h200", rows);
  ASSERT_TRUE(left) << left.error().context;
  EXPECT_GE(left->size(), 4U);
  Rows all;
  for (const HeldOutModel& model : *left)
    all.insert(all.end(), model.rows.begin(), model.rows.end());
  for (const std::string_view kind : kSteps) {
    const Errors errors = errors_of(all, kind_and_metric(kind, "time"));
    expect_mean(errors, 10, 0.05);
    expect_each(errors, 10, 0.15);
    RecordProperty(std::string(kind) + "_mean_percent", fmt::format("{:.2f}", errors.mean * 100));
    RecordProperty(std::string(kind) + "_worst_percent",
                   fmt::format("{:.2f}", errors.largest * 100));
  }
}

TEST(Limits, SharedLinksAreWithinOnePercentOfSimGrid) {
  const auto every = [](const Row&) { return true; };
  expect_each(errors_of(compared_rows("simgrid_flat.csv"), every), 100, 0.01);
  expect_each(errors_of(compared_rows("simgrid_contended.csv"), every), 30, 0.01);
}

TEST(Limits, PublishedTrainingWithFullRecomputeIsWithinThreeAndAHalfPercent) {
  const Rows rows = compared_rows("megatron.csv");
  expect_each(errors_of(rows, kind_and_metric("train_iteration", "time")), 4, 0.036);
}

TEST(Limits, PublishedTrainingMemoryIsWithinTwoPercent) {
  expect_each(errors_of(compared_rows("megatron.csv"),
                        [](const Row& row) { return row.metric.ends_with("memory"); }),
              6,
              0.02);
}

TEST(Limits, LargeCollectivesOfASupernodeAreEachWithinTenPercent) {
  const auto large = [](const Row& row) {
    if (row.kind != "all_gather" && row.kind != "reduce_scatter")
      return false;
    const auto params = Params::parse(row.params);
    return params && *params->number("bytes") >= 1 << 20;
  };
  expect_each(errors_of(compared_rows("ascend.csv"), large), 12, 0.10);
}

TEST(Limits, DecodeStepsOfASupernodeAreWithinFivePercent) {
  expect_each(
      errors_of(compared_rows("ascend.csv"), kind_and_metric("decode_step", "time")), 14, 0.05);
}

TEST(Limits, MatrixProductsOfAscendAreWithinFifteenPercentOnAverage) {
  expect_mean(
      errors_of(compared_rows("ascend_matmul.csv"), kind_and_metric("gemm", "time")), 5, 0.15);
}

TEST(Limits, PhasesOfThePublishedIterationAreWithinTwentyPercentAndItsTotalWithinTen) {
  const Rows rows = compared_rows("ascend.csv");
  for (const std::string_view phase : {"rollout", "reference_logprobs", "update"})
    expect_each(errors_of(rows, kind_and_metric("rl_iteration", phase)), 1, 0.20);
  expect_each(errors_of(rows, kind_and_metric("rl_iteration", "time")), 1, 0.10);
}

}  // namespace
}  // namespace temper::sim_hw
