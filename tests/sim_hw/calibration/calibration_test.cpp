#include "core/json.hpp"
#include "sim_hw/calibration/fit.hpp"
#include "sim_hw/calibration/store.hpp"
#include "sim_hw/queries/queries.hpp"
#include "tests/support/temporary_folder.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace temper::sim_hw {
namespace {

constexpr std::string_view kCard = "nvidia-h200";

/// Rows as a card with these constants would measure them, read back from CSV.
std::vector<Row> measured_with(const OperatorConstants& truth,
                               const std::vector<std::pair<std::string, std::string>>& questions) {
  Catalog catalog = Catalog::shipped();
  HardwareSpec spec = **catalog.hardware(kCard);
  spec.constants.operators = truth;
  catalog.put(spec);
  std::string csv = "hardware,cards,kind,params,metric,unit,value\n";
  for (const auto& [kind, params] : questions) {
    const auto answer =
        cost_of({catalog, "."}, {std::string(kCard), 1, kind, std::move(*Params::parse(params))});
    EXPECT_TRUE(answer) << kind << " " << params << ": " << answer.error().context;
    csv += fmt::format(
        "{},1,{},{},time,s,{:.17g}\n", kCard, kind, params, answer->find("time")->value);
  }
  const auto table = parse_csv("made.csv", csv);
  EXPECT_TRUE(table);
  const auto rows = to_rows(*table, "made.csv");
  EXPECT_TRUE(rows) << rows.error().context;
  return *rows;
}

std::vector<std::pair<std::string, std::string>> gemms_and_copies() {
  std::vector<std::pair<std::string, std::string>> out;
  for (const char* m : {"1", "64", "512", "4096", "16384"}) {
    for (const char* nk : {"n=1024;k=1024", "n=8192;k=1024", "n=1024;k=8192", "n=8192;k=8192"})
      out.emplace_back("gemm", fmt::format("m={};{}", m, nk));
  }
  for (const char* bytes : {"1024", "1000000", "1000000000"})
    out.emplace_back("device_copy", fmt::format("bytes={}", bytes));
  return out;
}

bool holds(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

TEST(Calibration, RecoversTheConstantsBehindTheRows) {
  OperatorConstants truth;
  truth.matmul_boost = 0.75;
  truth.matmul_sustained = 0.55;
  truth.matmul_boost_flops = 2e11;
  truth.matmul_latency = 5e-6;
  truth.matmul_depth_latency = 8e-6;
  truth.memory_efficiency = 0.7;
  truth.copy_efficiency = 0.95;
  truth.kernel_latency = 3e-6;
  Catalog catalog = Catalog::shipped();
  FitOptions options;
  options.prior = 1e-5;  // The rows have no noise.
  const auto fit = fit_operators(catalog, kCard, measured_with(truth, gemms_and_copies()), options);
  ASSERT_TRUE(fit) << fit.error().context;
  const OperatorConstants& c = fit->constants;
  EXPECT_NEAR(c.matmul_boost / truth.matmul_boost, 1, 0.01);
  EXPECT_NEAR(c.matmul_sustained / truth.matmul_sustained, 1, 0.01);
  EXPECT_NEAR(c.matmul_boost_flops / truth.matmul_boost_flops, 1, 0.05);
  EXPECT_NEAR(c.matmul_latency / truth.matmul_latency, 1, 0.01);
  EXPECT_NEAR(c.matmul_depth_latency / truth.matmul_depth_latency, 1, 0.01);
  EXPECT_NEAR(c.memory_efficiency / truth.memory_efficiency, 1, 0.01);
  EXPECT_NEAR(c.copy_efficiency / truth.copy_efficiency, 1, 0.01);
  EXPECT_NEAR(c.kernel_latency / truth.kernel_latency, 1, 0.01);
  for (const Comparison& row : fit->rows)
    EXPECT_NEAR(*row.error(), 0, 0.005) << row.row.params;
  // The catalog now uses the fitted constants.
  EXPECT_EQ((*catalog.hardware(kCard))->constants.operators.matmul_boost, c.matmul_boost);
}

TEST(Calibration, IsPulledTowardsItsPriorsByNoMoreThanTheirWeight) {
  OperatorConstants truth;
  truth.matmul_sustained = 0.6;
  truth.memory_efficiency = 0.75;
  Catalog catalog = Catalog::shipped();
  const auto fit = fit_operators(catalog, kCard, measured_with(truth, gemms_and_copies()));
  ASSERT_TRUE(fit) << fit.error().context;
  EXPECT_NEAR(fit->constants.memory_efficiency / truth.memory_efficiency, 1, 0.02);
  for (const Comparison& row : fit->rows)
    EXPECT_NEAR(*row.error(), 0, 0.02) << row.row.params;
}

TEST(Calibration, ReportsUndeterminedConstantsAndKeepsTheirPriors) {
  OperatorConstants truth;
  truth.copy_efficiency = 0.5;
  Catalog catalog = Catalog::shipped();
  const auto fit = fit_operators(
      catalog,
      kCard,
      measured_with(truth, {{"device_copy", "bytes=1000000000"}, {"device_copy", "bytes=1000"}}));
  ASSERT_TRUE(fit) << fit.error().context;
  EXPECT_EQ(fit->fitted, (std::vector<std::string>{"copy_efficiency", "kernel_latency"}));
  EXPECT_TRUE(holds(fit->undetermined, "matmul_boost"));
  EXPECT_TRUE(holds(fit->undetermined, "host_step"));
  EXPECT_FALSE(holds(fit->undetermined, "layer_kernels"));  // A count, never fitted.
  EXPECT_EQ(fit->constants.matmul_boost, OperatorConstants{}.matmul_boost);
  EXPECT_NEAR(fit->constants.copy_efficiency, 0.5, 0.005);
}

TEST(Calibration, FittingNamedConstantsKeepsTheOthers) {
  Catalog catalog = Catalog::shipped();
  OperatorConstants truth = (*catalog.hardware(kCard))->constants.operators;
  truth.copy_efficiency = 0.6;
  FitOptions options;
  options.only = {"copy_efficiency", "matmul_boost"};
  const auto fit = fit_operators(
      catalog, kCard, measured_with(truth, {{"device_copy", "bytes=1000000000"}}), options);
  ASSERT_TRUE(fit) << fit.error().context;
  EXPECT_EQ(fit->fitted, std::vector<std::string>{"copy_efficiency"});
  EXPECT_EQ(fit->undetermined, std::vector<std::string>{"matmul_boost"});
  EXPECT_NEAR(fit->constants.copy_efficiency, 0.6, 0.005);
  EXPECT_EQ(fit->constants.matmul_boost, truth.matmul_boost);
  EXPECT_EQ(fit->constants.attention_rate, truth.attention_rate);
}

TEST(Calibration, RefusesUnknownNamesAndKeepsTheCatalog) {
  Catalog catalog = Catalog::shipped();
  const OperatorConstants before = (*catalog.hardware(kCard))->constants.operators;
  std::vector<Row> rows = measured_with(before, {{"device_copy", "bytes=1000000000"}});
  FitOptions options;
  options.only = {"matmul_boots"};
  const auto misspelt = fit_operators(catalog, kCard, rows, options);
  ASSERT_FALSE(misspelt);
  EXPECT_EQ(misspelt.error().context, "no constant `matmul_boots`; did you mean `matmul_boost`?");
  rows[0].params = "bites=1000000000";
  const auto unpredictable = fit_operators(catalog, kCard, rows);
  ASSERT_FALSE(unpredictable);
  EXPECT_NE(unpredictable.error().context.find("row made.csv:2: cannot be predicted: device_copy"),
            std::string::npos)
      << unpredictable.error().context;
  rows[0].hardware = "nvidia-a100";
  const auto other = fit_operators(catalog, kCard, rows);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().context, "no measurement row is of hardware `nvidia-h200`");
  EXPECT_FALSE(fit_operators(catalog, "nvidia-h2000", rows));
  EXPECT_EQ((*catalog.hardware(kCard))->constants.operators.copy_efficiency,
            before.copy_efficiency);
}

TEST(Calibration, LeavesEachModelOutInTurnAndRestoresTheConstants) {
  OperatorConstants truth;
  truth.memory_efficiency = 0.7;
  auto questions = gemms_and_copies();
  for (const char* model : {"qwen2.5-0.5b", "qwen2.5-7b", "llama-3.1-8b"}) {
    for (const char* shape : {"batch=1;context=128", "batch=64;context=4096"})
      questions.emplace_back("decode_step", fmt::format("model={};{}", model, shape));
  }
  Catalog catalog = Catalog::shipped();
  const OperatorConstants before = (*catalog.hardware(kCard))->constants.operators;
  const auto left = leave_one_model_out(catalog, kCard, measured_with(truth, questions));
  ASSERT_TRUE(left) << left.error().context;
  ASSERT_EQ(left->size(), 3U);
  for (const HeldOutModel& model : *left) {
    ASSERT_EQ(model.rows.size(), 2U);
    for (const Comparison& row : model.rows) {
      EXPECT_EQ(row.row.params.rfind("model=" + model.model, 0), 0U);
      EXPECT_NEAR(*row.error(), 0, 0.02) << row.row.params;
    }
  }
  EXPECT_EQ((*catalog.hardware(kCard))->constants.operators.memory_efficiency,
            before.memory_efficiency);
}

TEST(CalibrationStore, RoundTrips) {
  const test::TemporaryFolder folder;
  const std::filesystem::path file = folder / "calibration/card.yaml";
  Calibration written;
  written.operators.matmul_boost = 0.1 + 0.2;  // Not exact in decimals.
  written.operators.attention_softmax = 1.0 / 3e13;
  written.fits = {{"matmul_boost, kernel_latency", "a \"file\", rows: 1-3", 3, 0.01, 1.0 / 3},
                  {"attention_softmax", "# a publication", 1, 0, 0}};
  const Status saved = save(written, file, "temper calibrate a.csv");
  ASSERT_TRUE(saved) << saved.error().context;
  const auto read = load(file);
  ASSERT_TRUE(read) << read.error().context;
  EXPECT_EQ(to_json(*read, JsonStyle::Pretty), to_json(written, JsonStyle::Pretty));
  EXPECT_EQ(read->operators.matmul_boost, written.operators.matmul_boost);
  EXPECT_EQ(read->operators.attention_softmax, written.operators.attention_softmax);
  EXPECT_FALSE(load(folder / "missing.yaml"));
  std::ofstream(file) << "operators:\n  matmul_boots: 0.5\n";
  const auto misspelt = load(file);
  ASSERT_FALSE(misspelt);
  EXPECT_NE(misspelt.error().context.find("matmul_boost"), std::string::npos)
      << misspelt.error().context;
}

TEST(CalibrationStore, KeepsTheSourcesOfConstantsThatAreNotRefitted) {
  const std::vector<FitRecord> before{{"matmul_boost, matmul_boost_flops, kernel_latency", "a", 1},
                                      {"matmul_boost", "b", 2},
                                      {"host_step", "c", 3}};
  const std::vector<std::string> fitted{"matmul_boost"};
  const std::vector<FitRecord> kept = records_without(before, fitted);
  ASSERT_EQ(kept.size(), 2U);
  EXPECT_EQ(kept[0].constants, "matmul_boost_flops, kernel_latency");
  EXPECT_EQ(kept[0].source, "a");
  EXPECT_EQ(kept[1].constants, "host_step");
  EXPECT_EQ(kept[1].rows, 3);
  EXPECT_EQ(records_without(before, {}).size(), 3U);
}

}  // namespace
}  // namespace temper::sim_hw
