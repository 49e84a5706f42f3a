// Sources of constants, and the possible error of an answer.
#include "sim_hw/validation/unmeasured.hpp"

#include "core/files.hpp"
#include "tests/support/temporary_folder.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace temper::sim_hw {
namespace {

namespace fs = std::filesystem;

const UnmeasuredConstant* find(const std::vector<UnmeasuredConstant>& all, std::string_view name) {
  const auto found = std::ranges::find(all, name, &UnmeasuredConstant::name);
  return found == all.end() ? nullptr : &*found;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

/// A user's H100 with slower NVLink: a modified copy of the shipped file.
class OwnHardware : public testing::Test {
 protected:
  OwnHardware() : catalog_(Catalog::shipped()) {
    std::string text = read_file(catalog_.configs() / "hardware/nvidia-h100.yaml").value();
    text = replaced(std::move(text), "name: nvidia-h100", "name: mine");
    text = replaced(std::move(text), "bandwidth: 450GB/s", "bandwidth: 400GB/s");
    EXPECT_TRUE(write_file_atomically(file(), text));
  }

  fs::path file() const { return folder_.path() / "mine.yaml"; }

  /// Uses the operators of another hardware, as named in its calibration file.
  void take_over(const std::string& from) {
    EXPECT_TRUE(write_file_atomically(folder_.path() / "mine.calibration.yaml",
                                      "taken_over_from: " + from + "\n"));
  }

  Request decode(const std::string& hardware) const {
    return {
        hardware, 2, "decode_step", *Params::parse("model=qwen3-32b;batch=64;context=4096;tp=2")};
  }

  double seconds(const std::string& hardware) {
    const auto cost = cost_of({catalog_, "."}, decode(hardware));
    EXPECT_TRUE(cost) << cost.error().context;
    return cost ? cost->find("time")->value : 0;
  }

  test::TemporaryFolder folder_;
  Catalog catalog_;
};

TEST_F(OwnHardware, WithoutACalibrationEachConstantIsADefaultAndNamed) {
  const auto hardware = catalog_.hardware(file().string());
  ASSERT_TRUE(hardware) << hardware.error().context;
  const std::vector<UnmeasuredConstant> unmeasured = unmeasured_constants(**hardware);
  const UnmeasuredConstant* const decode =
      find(unmeasured, "operators.attention_decode_efficiency");
  ASSERT_NE(decode, nullptr);
  EXPECT_EQ(decode->origin, ConstantOrigin::Default);
  EXPECT_EQ(find(unmeasured, "operators.norm_bytes"), nullptr) << "a count, not physics";
  const std::string note = simulated_run_note(**hardware);
  EXPECT_EQ(note.find("operators."), std::string::npos) << "names are listed only on request";
  EXPECT_NE(note.find(fmt::format("{} constants", unmeasured.size())), std::string::npos) << note;
  EXPECT_LT(note.find(" % at most"), note.find('\n')) << "the error comes first: " << note;
  EXPECT_NE(constant_names(unmeasured).find("defaults: operators.*"), std::string::npos);
}

TEST_F(OwnHardware, TheRangeOfAnAnswerCoversAMeasuredCard) {
  const Request request = decode(file().string());
  const auto cost = cost_of({catalog_, "."}, request);
  ASSERT_TRUE(cost) << cost.error().context;
  const UnmeasuredConstants unmeasured = analyze_unmeasured({catalog_, "."}, request, *cost);
  EXPECT_EQ(unmeasured.hardware, "mine");
  ASSERT_FALSE(unmeasured.constants.empty());
  // The widest range comes first, and each range contains the answer.
  const double answer = cost->metrics.front().value;
  double before = unmeasured.constants.front().most - unmeasured.constants.front().least;
  for (const ConstantEffect& effect : unmeasured.constants) {
    EXPECT_LE(effect.least, answer) << effect.name;
    EXPECT_GE(effect.most, answer) << effect.name;
    EXPECT_LE(effect.most - effect.least, before) << effect.name;
    before = effect.most - effect.least;
  }
  const auto h200 = std::ranges::find(
      unmeasured.together, std::string("nvidia-h200"), &std::pair<std::string, double>::first);
  ASSERT_NE(h200, unmeasured.together.end());
  EXPECT_NE(h200->second, answer);
}

TEST_F(OwnHardware, WithSlowerLinksAndTheOperatorsOfTheSameCardIsNoFaster) {
  take_over("nvidia-h100");
  const auto hardware = catalog_.hardware(file().string());
  ASSERT_TRUE(hardware) << hardware.error().context;
  EXPECT_GE(seconds(file().string()), seconds("nvidia-h100"));
}

TEST_F(OwnHardware, ReportsOperatorsTakenFromAnotherCard) {
  take_over("nvidia-h200");
  const auto hardware = catalog_.hardware(file().string());
  ASSERT_TRUE(hardware) << hardware.error().context;
  const std::vector<UnmeasuredConstant> unmeasured = unmeasured_constants(**hardware);
  ASSERT_NE(find(unmeasured, "operators.matmul_boost"), nullptr);
  EXPECT_EQ(find(unmeasured, "operators.matmul_boost")->origin, ConstantOrigin::TakenOver);
  EXPECT_EQ((*hardware)->constants.operators.matmul_boost,
            (*catalog_.hardware("nvidia-h200"))->constants.operators.matmul_boost);
}

TEST_F(OwnHardware, OperatorsOfAnUnknownCardAreAnError) {
  take_over("nvidia-h9000");
  const auto hardware = catalog_.hardware(file().string());
  ASSERT_FALSE(hardware);
  EXPECT_NE(hardware.error().context.find("taken_over_from: no fitted constants of `nvidia-h9000`"),
            std::string::npos)
      << hardware.error().context;
}

TEST(Unmeasured, AFitWithItsOwnRowsMeasuresAConstant) {
  HardwareSpec spec;
  spec.name = "h";
  spec.constants.operators.matmul_boost = 0.8;
  const std::size_t all = unmeasured_constants(spec).size();
  EXPECT_EQ(find(unmeasured_constants(spec), "operators.matmul_boost")->origin,
            ConstantOrigin::Given);
  spec.fits = {{"operators.matmul_boost, operators.matmul_latency", "rows A1-A9", 9, 0.1, 0.2},
               {"collectives.p2p", "taken over from g: rows B1", 3, 0, 0}};
  const std::vector<UnmeasuredConstant> unmeasured = unmeasured_constants(spec);
  EXPECT_EQ(unmeasured.size(), all - 2);
  EXPECT_EQ(find(unmeasured, "operators.matmul_boost"), nullptr);
  EXPECT_EQ(find(unmeasured, "collectives.p2p")->origin, ConstantOrigin::TakenOver);
  EXPECT_EQ(find(unmeasured, "collectives.all_gather")->origin, ConstantOrigin::Default);
  spec.fits = {{"operators", "h.csv, gemm", 9, 0.1, 0.2},
               {"collectives", "h.csv, all_gather", 9, 0.1, 0.2}};
  EXPECT_TRUE(unmeasured_constants(spec).empty());
  EXPECT_EQ(simulated_run_note(spec), "");
}

TEST(ErrorSpreadOf, OfUserFittedHardwareComesFromItsFit) {
  Catalog catalog = Catalog::shipped();
  HardwareSpec spec = **catalog.hardware("nvidia-h100");
  spec.name = "mine";
  spec.fits = {{"operators", "rows.csv, decode_step", 10, 0.02, 0.05},
               {"operators: the same constants, fitted together", "rows.csv, gemm", 4, 0.2, 0.3}};
  const KindMetric kinds[] = {{"decode_step", "time"}};
  const auto spread = error_spread(catalog, spec, kinds);
  ASSERT_TRUE(spread) << spread.error().context;
  EXPECT_EQ(spread->hardware, "mine");
  EXPECT_EQ(spread->rows, 10);
  EXPECT_DOUBLE_EQ(spread->max, 0.05);
  EXPECT_FALSE(spread->elsewhere);
}

TEST(ErrorSpreadOf, OfHardwareWithDefaultsComesFromOtherHardware) {
  Catalog catalog = Catalog::shipped();
  HardwareSpec spec = **catalog.hardware("nvidia-h200");
  spec.name = "mine";
  spec.fits.clear();
  spec.constants.operators = {};
  const KindMetric kinds[] = {{"decode_step", "time"}};
  const auto own = error_spread(catalog, **catalog.hardware("nvidia-h200"), kinds);
  const auto spread = error_spread(catalog, spec, kinds);
  ASSERT_TRUE(own && spread);
  EXPECT_TRUE(spread->elsewhere);
  EXPECT_TRUE(spread->substituted);
  EXPECT_GT(spread->max, own->max) << "fitted constants describe their card better than defaults";
}

}  // namespace
}  // namespace temper::sim_hw
