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

/// An exported adapter is the start of two further runs: one trains it on, the other has it merged.
TEST_F(Branched, ARunStartsFromAnExportedAdapter) {
  const Arguments lora{"--set", "model.lora={rank: 2, alpha: 4}", "--set", "steps=1"};
  const Ended first = as_built(arguments("a", lora));
  ASSERT_EQ(first.status, 0) << first.output;
  const std::string adapter = (folder() / "adapter").string();
  const Ended exported = as_built({"export", run_folder("a").string(), adapter});
  ASSERT_EQ(exported.status, 0) << exported.output;

  Arguments from = lora;
  from.insert(from.end(), {"--from", adapter});
  const Ended second = as_built(arguments("b", from));
  ASSERT_EQ(second.status, 0) << second.output;
  EXPECT_NE(second.output.find("starting from the adapter in " + adapter), std::string::npos)
      << second.output;
  expect_clean(run_folder("b"));
  const Ended again =
      as_built({"export", run_folder("b").string() + "@0", (folder() / "again").string()});
  ASSERT_EQ(again.status, 0) << again.output;
  const auto values = [&](const std::string& name) {
    return read_file(folder() / name / "adapter_model.safetensors").value_or(name);
  };
  EXPECT_EQ(values("again"), values("adapter"));
  EXPECT_NE(values("b/checkpoints/step-000001"), values("adapter"));
  // Engine and trainer started with the same policy.
  const auto metrics = parse_json(read_file(run_folder("b") / "metrics.jsonl").value_or(""));
  EXPECT_LT(metrics["log_ratio"].get<double>(), 1e-4);

  const Ended third = as_built(arguments("c", {"--from", adapter, "--set", "steps=1"}));
  ASSERT_EQ(third.status, 0) << third.output;
  EXPECT_NE(third.output.find("starting from the base merged with the adapter in"),
            std::string::npos)
      << third.output;
  expect_clean(run_folder("c"));
  EXPECT_FALSE(fs::exists(run_folder("c") / "base/adapter"));

  const Ended other =
      as_built(arguments("d", {"--from", adapter, "--set", "model.lora={rank: 4, alpha: 4}"}));
  EXPECT_NE(other.status, 0);
  EXPECT_NE(other.output.find("{rank: 2, alpha: 4, targets: [q_proj"), std::string::npos)
      << other.output;
  EXPECT_FALSE(fs::exists(run_folder("d")));
}

}  // namespace
}  // namespace temper::test
