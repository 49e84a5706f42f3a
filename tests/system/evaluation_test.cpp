// A real policy that is evaluated while it learns, and afterwards.
#include "core/files.hpp"
#include "core/json_document.hpp"
#include "tests/system/harness.hpp"

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace temper::test {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEvaluated = R"(name: evaluated
policy: torch
steps: 4
task: {kind: addition, digits: 1}
model: {hidden: 16, layers: 1, heads: 2, kv_heads: 1, ffn: 32, context: 16}
pretrain: {target_accuracy: 0.15, batch: 64, problems: 100}
sampling: {max_new_tokens: 4}
algorithm:
  groups_per_update: 8
  responses_per_group: 4
  minibatches: 2
  learning_rate: 0.01
evaluation: {every: 2, problems: 9}
checkpoint: {keep: 9}
)";

/// Without what was said on stderr: that other runs use the same cores, for one.
auto printed_json(const Ended& ended) {
  const std::size_t begin = ("\n" + ended.output).find("\n{");
  return parse_json(std::string_view(ended.output).substr(std::min(begin, ended.output.size())));
}

class Evaluated : public NamedRunsTest {
 protected:
  Evaluated() : NamedRunsTest(kEvaluated) {}
  Ended as_built(const Arguments& arguments) {
    const auto environment = [cache = (folder() / "cache").string()] {
      ::setenv("TEMPER_CACHE", cache.c_str(), 1);
    };
    return Temper(arguments, {folder(), environment, kTemperAsBuilt}).wait();
  }
};

TEST_F(Evaluated, ARunHoldsItsFirstLastAndEverySecondVersionAgainstWhatItNeverTrainedOn) {
  const fs::path run = run_folder("a");
  const Ended ended = as_built(arguments("a", {}));
  ASSERT_EQ(ended.status, 0) << ended.output;
  const auto summary = parse_json(read_file(run / "summary.json").value_or(""));
  const auto& points = summary["evaluation"]["points"];
  ASSERT_EQ(points.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(points[i]["step"], 2 * i);
  EXPECT_GT(summary["evaluation"]["card_s"], 0.0);
  EXPECT_NE(ended.output.find("held-out problems: pass@1"), std::string::npos) << ended.output;
  for (const char* check : {"audit", "replay"}) {
    const Ended checked = as_built({check, run.string()});
    EXPECT_EQ(checked.status, 0) << checked.output;
  }

  const Ended again = as_built({"eval", run.string() + "@4", "--json"});
  ASSERT_EQ(again.status, 0) << again.output;
  const auto found = printed_json(again);
  EXPECT_EQ(found["version"], 4);
  EXPECT_EQ(found["problems"], 9);
  EXPECT_EQ(found["pass_1"], points[2]["pass_1"]);

  const fs::path file = folder() / "test.jsonl";
  ASSERT_TRUE(write_file_atomically(
      file, "{\"prompt\":\"1+1=\",\"answer\":\"2\"}\n{\"prompt\":\"2+2=\",\"answer\":\"4\"}\n"));
  const Ended own = as_built({"eval", run.string(), "--task", file.string(), "--json"});
  ASSERT_EQ(own.status, 0) << own.output;
  EXPECT_EQ(printed_json(own)["problems"], 2) << "all of the file";
  const Ended three = as_built({"eval", run.string(), "--task", file.string(), "--problems", "3"});
  EXPECT_EQ(three.status, 2) << three.output;
  EXPECT_NE(three.output.find("--problems: expected at most 2"), std::string::npos) << three.output;

  const auto& best = summary["evaluation"]["best"];
  if (best["step"] != 0) {  // the base has no checkpoint
    const Ended of_best = as_built({"eval", run.string() + "@best", "--json"});
    ASSERT_EQ(of_best.status, 0) << of_best.output;
    EXPECT_EQ(printed_json(of_best)["version"], best["step"]);
    EXPECT_EQ(printed_json(of_best)["pass_1"], best["pass_1"]);
  }
}

TEST_F(Evaluated, ABranchBeginsWithTheWeightsOfTheVersionThatItIsFrom) {
  ASSERT_EQ(as_built(arguments("a", {})).status, 0);
  const std::string from = run_folder("a").string() + "@2";
  const Ended other = as_built(arguments("b", {"--from", from, "--set", "model.hidden=32"}));
  EXPECT_EQ(other.status, 2) << other.output;
  EXPECT_NE(other.output.find("model.hidden: expected the value of"), std::string::npos)
      << other.output;
  const Ended branch = as_built(arguments("b", {"--from", from, "--set", "steps=1"}));
  ASSERT_EQ(branch.status, 0) << branch.output;
  EXPECT_NE(branch.output.find("starting from the weights of step 2 of"), std::string::npos)
      << branch.output;
  const auto points = [&](const std::string& name) {
    return parse_json(read_file(run_folder(name) / "summary.json").value())["evaluation"]["points"];
  };
  EXPECT_EQ(points("b")[0]["pass_1"], points("a")[1]["pass_1"]);
  EXPECT_EQ(points("b")[0]["reward"], points("a")[1]["reward"]);
}

}  // namespace
}  // namespace temper::test
