"""An example of each kind of change, written as a developer would write it: change_cost --try adds them to a copy
of the tree.

Each example has a name that is in every file that is made anew for it, and in no other one.
"""
import dataclasses


@dataclasses.dataclass
class Edit:
    """One occurrence of `old` becomes `new`. Without `old`, the file is new."""
    file: str
    old: str
    new: str


@dataclasses.dataclass
class Copied:
    """A new file: `of`, with words replaced."""
    file: str
    of: str
    words: dict


@dataclasses.dataclass
class Example:
    kind: str
    name: str
    code: int   # Most source files.
    files: int  # Most files.
    edits: list
    tests: dict  # Test program -> filter.


def after(file, line, added):
    return Edit(file, line, line + added)


METRIC = Example(
    "metric", "example_count", code=3, files=6,
    edits=[
        after("orchestrator/metrics/update_history.hpp",
              "  std::uint64_t groups = 0;\n",
              "  std::uint64_t example_count = 0;  ///< An example.\n"),
        after("orchestrator/metrics/run_metrics.cpp",
              "  ++update.batch.groups;\n",
              "  ++update.batch.example_count;\n"),
        after("orchestrator/metrics/metric_table.cpp",
              "constexpr auto kTable = std::to_array<Metric>({\n",
              """    {.name = "example_count",
     .unit = "groups",
     .doc = "An example of a metric.",
     .place = {"Examples", "example"},
     .names = {"example/trl"},
     .value = [](Line l) { return number(l.update.batch.example_count); }},
"""),
    ],
    tests={})

RULE = Example(
    "staleness rule", "example_rule", code=4, files=8,
    edits=[
        Edit("orchestrator/scheduler/staleness/example_rule.hpp", "", """\
// `example_rule`: an update takes the groups of the oldest versions, and waits for all of these.
//
// Rule.      Dispatch under version v while fewer than (v + eta + 1) B groups were dispatched; an
//            update takes the B oldest by version, once all groups of these versions are ready.
// Guarantee. T - v0 <= eta: what is trained before a group of version v was dispatched before it, or
//            under a version that is not newer; together these are at most (v + eta + 1) B groups.
#pragma once

#include "orchestrator/scheduler/staleness/staleness_rule.hpp"

namespace temper::orchestrator {

class ExampleRule final : public StalenessRule {
 public:
  bool admits(PolicyVersion engine, const DistQueue&, const OutstandingGroups& s) const override {
    return static_cast<double>(s.dispatched + 1) <=
           (s.bound + static_cast<double>(engine.value()) + 1) * s.batch;
  }
  bool may_train(const GroupsByVersion& ready, const OutstandingGroups& s) const override {
    std::int64_t there = 0;
    for (const auto& [v0, groups] : s.outstanding) {
      if (there >= s.batch)
        return true;
      const auto it = ready.find(v0);
      if (it == ready.end() || it->second < groups)
        return false;
      there += groups;
    }
    return there >= s.batch;
  }
  std::optional<Demand> demand(const OutstandingGroups& s) const override {
    std::int64_t there = 0;
    for (const auto& [v0, groups] : s.outstanding) {
      there += s.waiting(v0);
      if (there >= s.batch)
        return Demand{v0, there};
    }
    return std::nullopt;
  }
  std::optional<std::uint64_t> guarantee(const OutstandingGroups& s) const override {
    return static_cast<std::uint64_t>(s.bound);
  }
};

}  // namespace temper::orchestrator
"""),
        after("orchestrator/scheduler/staleness/CMakeLists.txt", "    drop.hpp\n", "    example_rule.hpp\n"),
        Edit("orchestrator/scheduler/staleness/rule_kind.hpp", "Window, InOrder };", "Window, InOrder, Example };"),
        after("orchestrator/scheduler/staleness/rule_kind.hpp",
              "    {.value = StalenessRuleKind::InOrder, .name = \"in_order\", .limits_running = true},\n",
              "    {StalenessRuleKind::Example, \"example_rule\"},\n"),
        after("orchestrator/scheduler/staleness/staleness_rule.cpp",
              '#include "orchestrator/scheduler/staleness/drop.hpp"\n',
              '#include "orchestrator/scheduler/staleness/example_rule.hpp"\n'),
        after("orchestrator/scheduler/staleness/staleness_rule.cpp",
              "      return std::make_unique<InOrderRule>();\n",
              "    case StalenessRuleKind::Example:\n      return std::make_unique<ExampleRule>();\n"),
        after("orchestrator/record/audit.cpp",
              "    case StalenessRuleKind::InOrder:\n",
              "    case StalenessRuleKind::Example:\n"),
        after("tests/orchestrator/scheduler/staleness_test.cpp", "  EXPECT_NE(young, running);\n}\n", """
TEST_F(Policy, ExampleWaitsForAllGroupsOfTheOldestVersion) {
  begin(1, 1);
  const auto rule = make_staleness_rule(StalenessRuleKind::Example);
  const GroupId slow = dispatch(0);
  const GroupId quick = dispatch(0);
  EXPECT_FALSE(admits(*rule, 0)) << "(0 + 1 + 1) x 1 are dispatched";
  finish(quick);
  EXPECT_TRUE(select(*rule).empty());
  finish(slow);
  EXPECT_EQ(select(*rule), Groups{slow});
}
"""),
        Edit("docs/explanation/semantics.md", "\n`aggregate` and `count` accept a fractional eta.",
             "| `example_rule` | as `in_order` | the B oldest groups by version, once all groups of these versions are "
             "ready | none | age <= eta | an example |\n\n`aggregate` and `count` accept a fractional eta."),
    ],
    tests={"test_scheduler_staleness": "*",
           "test_scheduler": "SchedulerProperty.EveryScheduleEndsWithinTheBoundAndConservesGroups"})

# Rollout engines have cards of their own, the trainer lends its cards, and the reference scores on these: roles that
# no other mode places like this, and a rule of its own for the turns.
MODE = Example(
    "placement mode", "example_mode", code=8, files=16,
    edits=[
        Edit("actors/protocol/placement_mode.hpp", "Fused, Hybrid };", "Fused, Hybrid, Example };"),
        after("actors/protocol/placement_mode.hpp",
              "constexpr auto kPlacementModes = std::to_array<PlacementTraits>({\n",
              """    {.value = PlacementMode::Example,
     .name = "example_mode",
     .doc = "as `hybrid`, and the reference scores on the trainer's devices",
     .exclusive_rollout = true,
     .shares = true,
     .shares_reference = true},
"""),
        Edit("orchestrator/scheduler/sharing/example_mode.hpp", "", """\
// The trainer lends its cards whenever it has nothing to train, and the reference scores on them
// (placement.mode: example_mode).
//
// Rule.  To rollout: with nothing to train, if responses wait for an engine.
//        To training: a batch is complete, or will be once scored, or nothing generates on lent
//        cards.
#pragma once

#include "orchestrator/scheduler/sharing/together.hpp"

namespace temper::orchestrator {

class ExampleMode final : public Together {
 private:
  bool rollout_is_due(const RunState& run) const override;
  bool training_is_due(const RunState& run) const override;
};

}  // namespace temper::orchestrator
"""),
        Edit("orchestrator/scheduler/sharing/example_mode.cpp", "", """\
#include "orchestrator/scheduler/sharing/example_mode.hpp"

#include <algorithm>

namespace temper::orchestrator {

bool ExampleMode::rollout_is_due(const RunState& run) const {
  return run.can_admit() || !run.saved.queue.ready(Task::Generate).empty();
}

bool ExampleMode::training_is_due(const RunState& run) const {
  if (run.select_batch() || run.scoring_makes_a_batch())
    return true;
  return !run.can_admit() && run.withdrawn.empty() &&
         run.saved.queue.ready(Task::Generate).empty() &&
         std::ranges::all_of(run.fleet.turning_engines(), [&](ActorId a) {
           return run.saved.queue.load(a).responses == 0;
         });
}

}  // namespace temper::orchestrator
"""),
        Edit("orchestrator/scheduler/sharing/CMakeLists.txt", "    lending.cpp\n", "    example_mode.cpp\n    lending.cpp\n"),
        Edit("orchestrator/scheduler/sharing/CMakeLists.txt", "    lending.hpp\n", "    example_mode.hpp\n    lending.hpp\n"),
        Edit("orchestrator/scheduler/sharing/card_sharing.cpp",
             '#include "orchestrator/scheduler/sharing/lending.hpp"\n',
             '#include "orchestrator/scheduler/sharing/example_mode.hpp"\n'
             '#include "orchestrator/scheduler/sharing/lending.hpp"\n'),
        Edit("orchestrator/scheduler/sharing/card_sharing.cpp",
             "  if (run.fleet.lends())\n",
             "  if (run.fleet.lends() && !run.fleet.turning_references().empty())\n"
             "    return std::make_unique<ExampleMode>();\n"
             "  if (run.fleet.lends())\n"),
        after("tests/orchestrator/scheduler/sharing_modes_test.cpp", "// --- One by one\n", """
SchedulerConfig example_mode() {
  SchedulerConfig c = small_config(Shared::EnginesAndReference);
  c.actors[kEngine.value()].takes_turns = false;
  return c;
}

TEST(ExampleMode, LendsTheCardsUntilScoresCompleteABatch) {
  SharedRun s(example_mode());
  generating_group(s.run, kEngine);
  s.drive();
  s.go_to(Phase::Rollout);
  generating_group(s.run, kOther);
  s.drive();
  EXPECT_EQ(s.phase(), Phase::Rollout);
  EXPECT_FALSE(s.sharing.may_prepare());
}
"""),
        Edit("tests/orchestrator/scheduler/sharing_modes_test.cpp",
             "                                          fused_one_by_one};\n",
             "                                          fused_one_by_one,\n"
             "                                          example_mode()};\n"),
        Edit("docs/explanation/co-location.md", "| `hybrid` |",
             "| `example_mode` | as `hybrid` | the trainer's cards |\n| `hybrid` |"),
    ],
    tests={"test_scheduler_sharing": "*",
           "test_scheduler": "SchedulerProperty.EveryScheduleEndsWithinTheBoundAndConservesGroups",
           "test_simulated_memory": "SimulatedMemory.TenThousandPlacementsAreRefusedOrFitInEveryPhase",
           "test_virtual": "RandomRuns.*"})

# A server with routes of its own, whose requests are SGLang's.
ENGINE = Example(
    "engine kind", "example_server", code=6, files=14,
    edits=[
        Edit("actors/protocol/engine_config.hpp", "Openai, Llamacpp };", "Openai, Llamacpp, Example };"),
        after("actors/protocol/engine_config.hpp",
              '    {EngineKind::Sglang, "sglang", detail::kServerDoc, ServerLoading::Routes},\n',
              '    {EngineKind::Example, "example_server", detail::kServerDoc, ServerLoading::Routes},\n'),
        Copied("actors/server/example_api.cpp", "actors/server/sglang_api.cpp",
               {"Sglang": "Example", "make_sglang_api": "make_example_api", '"/': '"/example/', "SGLang's": "The example's"}),
        Edit("actors/server/CMakeLists.txt", "    http_client.cpp\n", "    example_api.cpp\n    http_client.cpp\n"),
        Edit("actors/server/server_api.hpp",
             "std::unique_ptr<ServerApi> make_sglang_api(",
             "std::unique_ptr<ServerApi> make_example_api(const ServerSampling& sampling);\n"
             "std::unique_ptr<ServerApi> make_sglang_api("),
        after("actors/server/server_api.cpp",
              "      return make_sglang_api(sampling);\n",
              "    case EngineKind::Example:\n      return make_example_api(sampling);\n"),
        Edit("tests/actors/server/server_api_test.cpp",
             "// A shortened response of release 0.32.\n",
             """TEST(ExampleApi, HasRoutesOfItsOwn) {
  EXPECT_EQ(make_example_api(sampling())->generate({"id-1", kTokens, 5, "v1"}).target,
            "/example/generate");
}

// A shortened response of release 0.32.
"""),
        Edit("tests/support/fake_server.py", "# Kind -> what answers its requests.\n", """\
async def example(fake, path, query, body):
    if not path.startswith("/example/"):
        return 404, {"detail": "Not Found"}
    return await fake.sglang(path.removeprefix("/example"), query, body)


# Kind -> what answers its requests.
"""),
        Edit("tests/support/fake_server.py", '"sglang": Fake.sglang,', '"sglang": Fake.sglang, "example_server": example,'),
        Edit("docs/how-to/servers.md", "# or sglang, openai, llamacpp", "# or sglang, example_server, openai, llamacpp"),
    ],
    tests={"test_servers": "ExampleApi.*:Servers/*example_server*"})

EXAMPLES = [RULE, MODE, METRIC, ENGINE]
