// `temper cost`, `temper validate` and `temper ablation`, with the shipped hardware descriptions.
#include "cli/study/ablation_command.hpp"
#include "cli/study/calibrate_command.hpp"
#include "cli/study/cost_command.hpp"
#include "cli/study/validate_command.hpp"
#include "core/files.hpp"
#include "core/json_document.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

namespace temper::cli {
namespace {

struct Outcome {
  int code = 0;
  std::string out, err;
};

Outcome estimate(CostOptions options) {
  std::ostringstream out, err;
  const int code = run_cost(options, out, err);
  return {code, out.str(), err.str()};
}

Outcome validate(const ValidateOptions& options) {
  std::ostringstream out, err;
  const int code = run_validate(options, out, err);
  return {code, out.str(), err.str()};
}

std::string file(const std::string& name, const std::string& text) {
  const std::string path = test::temporary_file(name);
  std::ofstream(path) << text;
  return path;
}

// A copy cannot be faster than its link: far from 1 ns, near 20 ms.
constexpr const char* kRows =
    "id,hardware,cards,kind,params,metric,unit,value\n"
    "fast,nvidia-h200,1,host_to_device,bytes=1000000000,time,ms,18.0364\n";

TEST(Cost, ExplainsItsNotationWhereAnEquationHasIt) {
  CostOptions options;
  options.explain = true;
  options.assignments = {"kind=gemm", "hardware=nvidia-h200", "m=128", "n=4608", "k=3584"};
  const Outcome explained = estimate(options);
  ASSERT_EQ(explained.code, 0) << explained.err;
  ASSERT_NE(explained.out.find("|4 +"), std::string::npos) << explained.out;
  EXPECT_NE(explained.out.find("|a, b|4 = (a^4 + b^4)^(1/4)"), std::string::npos);
  options.explain = false;
  EXPECT_EQ(estimate(options).out.find("|a, b|4"), std::string::npos);
}

TEST(Cost, OfHardwareAloneNamesTheConstantsThatAreNotMeasured) {
  CostOptions options;
  options.explain = true;
  options.assignments = {"hardware=cm384"};
  const Outcome named = estimate(options);
  EXPECT_EQ(named.code, 0) << named.err;
  EXPECT_NE(named.out.find("operators."), std::string::npos) << named.out;
  options.assignments = {"hardware=cm385"};
  EXPECT_NE(estimate(options).code, 0);
  options.explain = false;
  options.assignments = {"hardware=cm384"};
  EXPECT_NE(estimate(options).code, 0) << "a cost needs a kind";
}

TEST(Ablation, PrintsEachRowAsATableAndAsJson) {
  std::ostringstream table, json, err;
  EXPECT_EQ(run_ablation({}, table, err), 0) << err.str();
  EXPECT_NE(table.str().find("Adaptive Pipe against DualPipe: memory"), std::string::npos);
  AblationOptions options;
  options.json = true;
  EXPECT_EQ(run_ablation(options, json, err), 0) << err.str();
  bool found = false;
  for (const auto& row : parse_json_or_throw(json.str())) {
    if (row["mechanism"] == "Adaptive Pipe against DualPipe: memory") {
      found = true;
      EXPECT_DOUBLE_EQ(row["predicted"].get<double>(), -0.5);
      EXPECT_DOUBLE_EQ(row["published"].get<double>(), -0.5);
    }
  }
  EXPECT_TRUE(found);
}

TEST(Ablation, SaysWhichFileItCannotRead) {
  AblationOptions options;
  options.expert_loads = "/nowhere/loads.csv";
  std::ostringstream out, err;
  EXPECT_EQ(run_ablation(options, out, err), 2);
  EXPECT_NE(err.str().find("/nowhere/loads.csv"), std::string::npos) << err.str();
}

TEST(Estimate, PrintsMetricsAsJsonWithTermsThatSumUp) {
  CostOptions options;
  options.assignments = {"kind=gemm", "hardware=NVIDIA-H200", "m=4096", "n=4096", "k=4096"};
  options.json = true;
  const Outcome outcome = estimate(options);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto json = parse_json_or_throw(outcome.out);
  EXPECT_EQ(json["kind"], "gemm");
  EXPECT_EQ(json["params"], "k=4096;m=4096;n=4096");
  const auto& time = json["metrics"][0];
  EXPECT_EQ(time["name"], "time");
  EXPECT_EQ(time["unit"], "s");
  double sum = 0;
  for (const auto& term : time["terms"])
    sum += term["value"].get<double>();
  EXPECT_NEAR(sum, time["value"].get<double>(), 1e-9 * sum);
}

TEST(Estimate, ExplainsEachTermWithItsEquation) {
  CostOptions options;
  options.assignments = {"kind=host_to_device", "hardware=nvidia-h200", "bytes=1000000000"};
  options.explain = true;
  const Outcome outcome = estimate(options);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("100.0 %"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("B/s"), std::string::npos) << outcome.out;
}

TEST(Estimate, NamesWhatIsWrongAndWhereToLook) {
  CostOptions options;
  options.assignments = {"gemm"};
  EXPECT_EQ(estimate(options).err,
            "temper: expected key=value, found `gemm`\n"
            "kinds and their parameters: temper cost --list\n");
  options.assignments = {"kind=gem", "hardware=nvidia-h200"};
  const Outcome outcome = estimate(options);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(outcome.err.starts_with("temper: unknown kind `gem`; did you mean `gemm`?\n"));
  options.assignments = {"kind=gemm", "hardware=nvidia-h200", "m=1"};
  EXPECT_EQ(
      estimate(options).err,
      "temper: gemm: n: missing; expected a number\nparameters of gemm: m; n; k; dtype=bf16\n");
  options.assignments = {"kind=gemm", "hardware=nvidia-h200", "cards=0"};
  EXPECT_TRUE(estimate(options).err.starts_with("temper: cards: expected at least 1, found 0\n"));
}

TEST(Estimate, ListsTheKinds) {
  CostOptions options;
  options.list = true;
  EXPECT_NE(estimate(options).out.find("decode_step"), std::string::npos);
}

TEST(Validate, GivesKindsAndRowsAsJson) {
  ValidateOptions options;
  options.files = {file("validate_json.csv", kRows)};
  options.json = true;
  const Outcome outcome = validate(options);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto json = parse_json_or_throw(outcome.out);
  ASSERT_EQ(json.size(), 3U);
  EXPECT_TRUE(json.contains("coverage"));
  const auto keys = [](const nlohmann::json& object) {
    std::set<std::string> names;
    for (const auto& [name, value] : object.items())
      names.insert(name);
    return names;
  };
  EXPECT_EQ(keys(json["kinds"][0]),
            (std::set<std::string>{"kind", "n", "mape", "bias", "max", "rank_correlation"}));
  EXPECT_EQ(keys(json["rows"][0]),
            (std::set<std::string>{"id",
                                   "hardware",
                                   "cards",
                                   "kind",
                                   "params",
                                   "metric",
                                   "unit",
                                   "measured",
                                   "predicted",
                                   "error",
                                   "low",
                                   "high",
                                   "matters"}));
  const auto& row = json["rows"][0];
  EXPECT_EQ(row["measured"], 18.0364);
  EXPECT_NEAR(row["predicted"].get<double>() / row["measured"].get<double>() - 1,
              row["error"].get<double>(),
              1e-9);
}

TEST(Validate, FailsAboveALimit) {
  ValidateOptions options;
  options.files = {file("validate_limit.csv", kRows)};
  options.max_mape = {"host_to_device=50%"};
  EXPECT_EQ(validate(options).code, 0);
  options.max_mape = {"host_to_device=0"};
  EXPECT_EQ(validate(options).code, 3);
  EXPECT_NE(validate(options).err.find("above the limit 0.0 %"), std::string::npos);
  options.max_mape = {"gemm=0.5"};
  EXPECT_EQ(validate(options).code, 3);  // Nothing was held against it.
  options.max_mape = {"gemm"};
  EXPECT_EQ(validate(options).err,
            "temper: --max-mape: expected kind=limit such as gemm=0.2, found `gemm`\n");
}

TEST(Validate, FailsOnARowWithoutPredictionUnlessAllowed) {
  ValidateOptions options;
  options.files = {file("validate_failed.csv",
                        std::string(kRows) + "bad,nvidia-h200,1,gem,m=1;n=1;k=1,time,ms,1\n")};
  const Outcome outcome = validate(options);
  EXPECT_EQ(outcome.code, 3);
  EXPECT_NE(outcome.out.find("FAILED: unknown kind `gem`"), std::string::npos) << outcome.out;
  options.allow_failures = true;
  EXPECT_EQ(validate(options).code, 0);
}

TEST(Validate, ConvertsPublicationsToRows) {
  ValidateOptions options;
  options.convert = true;
  options.files = {
      file("published.csv",
           "id,area,system,hardware,cards,model,conditions,metric,unit,value,source\n"
           "A,operator,s,NVIDIA H100 SXM,1,-,op=GEMM BF16;m=16;n=7168;k=2048,latency,ms,0.013,x\n"
           "B,operator,s,NVIDIA H100 SXM,1,-,op=GEMM,latency,ms,0.013,x [secondary]\n")};
  const Outcome outcome = validate(options);
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out,
            "id,hardware,cards,kind,params,metric,unit,value,source,table,area\n"
            "A,nvidia-h100,1,gemm,m=16;n=7168;k=2048;dtype=bf16,time,ms,0.013,x,published,"
            "operator\n");
  EXPECT_EQ(outcome.err, "converted 1 rows; 1 are marked as not used\n");
}

TEST(Validate, NamesAFileThatIsNotOneOfMeasurements) {
  ValidateOptions options;
  options.files = {file("other.csv", "a,b\n1,2\n")};
  const Outcome outcome = validate(options);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("other.csv: no column `hardware`"), std::string::npos) << outcome.err;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

/// A card of one's own, and what was measured on it: those of the H200 under another name.
class OwnCard : public testing::Test {
 protected:
  OwnCard() {
    const std::string root = TEMPER_SOURCE_DIR;
    std::string card = read_file(root + "/configs/hardware/nvidia-h200.yaml").value();
    card = replaced(std::move(card), "name: nvidia-h200", "name: mine");
    card = replaced(std::move(card), "memory: 141GiB", "memory: 40GiB");
    EXPECT_TRUE(write_file_atomically(folder_ / "mine.yaml", card));
    std::string rows = read_file(root + "/configs/validation/h200.csv").value();
    EXPECT_TRUE(write_file_atomically(folder_ / "rows.csv", replaced(rows, "nvidia-h200", "mine")));
    options_.files = {(folder_ / "rows.csv").string()};
    options_.hardware_file = (folder_ / "mine.yaml").string();
  }

  Outcome calibrate() {
    std::ostringstream out, err;
    const int code = run_calibrate(options_, out, err);
    return {code, out.str(), err.str()};
  }

  Outcome decode_step() const {
    CostOptions options;
    options.assignments = {"kind=decode_step",
                           "hardware=" + options_.hardware_file,
                           "model=qwen2.5-7b",
                           "batch=32",
                           "context=2048"};
    return estimate(options);
  }

  test::TemporaryFolder folder_;
  CalibrateOptions options_;
};

TEST_F(OwnCard, IsCalibratedBesideItsFileAndUsedFromThere) {
  const Outcome before = decode_step();
  EXPECT_NE(before.out.find("not measured on mine"), std::string::npos) << before.out;
  EXPECT_NE(before.out.find("with all of these constants as on nvidia-h100: "), std::string::npos);
  const Outcome outcome = calibrate();
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto written = folder_ / "mine.calibration.yaml";
  EXPECT_NE(outcome.out.find("written: " + written.string()), std::string::npos) << outcome.out;
  EXPECT_NE(read_file(written).value().find("--hardware-file mine.yaml"), std::string::npos);
  const Outcome after = decode_step();
  EXPECT_EQ(after.code, 0) << after.err;
  EXPECT_EQ(after.out.find("not measured on mine"), std::string::npos) << after.out;
}

TEST_F(OwnCard, LeavesOutARowThatDoesNotFitItsMemoryAndNamesIt) {
  options_.dry_run = true;
  const Outcome outcome = calibrate();
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("left out: row rows.csv:"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("exceeds the 40.00 GiB of mine"), std::string::npos) << outcome.out;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "mine.calibration.yaml"));
}

TEST_F(OwnCard, HasRowsOfItsOwnNameOrNone) {
  options_.files = {std::string(TEMPER_SOURCE_DIR) + "/configs/validation/h200.csv"};
  const Outcome outcome = calibrate();
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err, "temper calibrate: no measurement row is of hardware `mine`\n");
  options_.hardware = "nvidia-h200";
  EXPECT_NE(calibrate().err.find("give one"), std::string::npos);
}

std::string content(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(ValidateCommand, TheCommittedReportIsThatOfTheShippedConstants) {
  const std::string root = TEMPER_SOURCE_DIR;
  ValidateOptions options;
  for (const char* name : {"ascend",
                           "ascend_matmul",
                           "h200",
                           "megatron",
                           "nvidia",
                           "simgrid_contended",
                           "simgrid_flat",
                           "unused"}) {
    options.files.push_back(root + "/configs/validation/" + name + ".csv");
  }
  options.rows = false;
  options.report = test::temporary_file("validation.md");
  ASSERT_EQ(validate(options).code, 0);
  EXPECT_EQ(content(options.report), content(root + "/docs/reports/validation.md"))
      << "write it anew: temper validate --report docs/reports/validation.md "
         "configs/validation/*.csv";
}

}  // namespace
}  // namespace temper::cli
