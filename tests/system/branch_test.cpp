// A real policy that is gone on with under other settings, with another number of engines, and from
// whose middle another run begins.
#include "core/files.hpp"
#include "core/json_document.hpp"
#include "tests/system/harness.hpp"

#include <cstdlib>

namespace temper::test {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kConfig = R"(name: branched
policy: torch
steps: 3
task: {kind: addition, digits: 1}
model: {hidden: 16, layers: 1, heads: 2, kv_heads: 1, ffn: 32, context: 16}
pretrain: {target_accuracy: 0.15, batch: 64, problems: 100}
sampling: {max_new_tokens: 4}
staleness: {bound: 1}
algorithm:
  groups_per_update: 8
  responses_per_group: 4
checkpoint: {every: 1, keep: 9}
)";

class Branched : public NamedRunsTest {
 protected:
  Branched() : NamedRunsTest(kConfig) {}
  Ended as_built(const Arguments& arguments) {
    const auto environment = [cache = (folder() / "cache").string()] {
      ::setenv("TEMPER_CACHE", cache.c_str(), 1);
    };
    return Temper(arguments, {folder(), environment, kTemperAsBuilt}).wait();
  }
  void expect_clean(const fs::path& run) {
    for (const char* check : {"audit", "replay"}) {
      const Ended checked = as_built({check, run.string()});
      EXPECT_EQ(checked.status, 0) << checked.output;
    }
  }
};

TEST_F(Branched, ARunGoesOnWithAnotherBoundMoreEnginesAndMoreStepsAndABranchBeginsInItsMiddle) {
  const fs::path run = run_folder("a");
  const Ended first = as_built(arguments("a", {}));
  ASSERT_EQ(first.status, 0) << first.output;
  const Ended second = as_built({"run",
                                 "--resume",
                                 run.string(),
                                 "--set",
                                 "staleness.bound=2",
                                 "--set",
                                 "rollout.replicas=2",
                                 "--set",
                                 "steps=6"});
  ASSERT_EQ(second.status, 0) << second.output;
  EXPECT_NE(second.output.find("rollout.replicas: 1 -> 2"), std::string::npos) << second.output;
  expect_clean(run);
  const auto summary = parse_json(read_file(run / "summary.json").value_or(""));
  EXPECT_EQ(summary["steps"], 6);
  EXPECT_EQ(summary["staleness"]["bound"], 2);

  const Ended branch =
      as_built(arguments("b", {"--from", run.string() + "@4", "--set", "steps=1"}));
  ASSERT_EQ(branch.status, 0) << branch.output;
  EXPECT_NE(branch.output.find("starting from the weights of step 4 of"), std::string::npos)
      << branch.output;
  expect_clean(run_folder("b"));
}

}  // namespace
}  // namespace temper::test
