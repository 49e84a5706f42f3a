// Signals in the phases that only a real policy has: the making of its base and its evaluation.
#include "core/clock.hpp"
#include "core/files.hpp"
#include "orchestrator/scheduler/queue/evaluation_ids.hpp"
#include "tests/system/harness.hpp"
#include "tests/system/stop_signals.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <tuple>

namespace temper::test {
namespace {

namespace fs = std::filesystem;
namespace command = orchestrator::command;

constexpr std::string_view kRealPolicy = R"(name: signaled
policy: torch
steps: 100000
task: {kind: addition, digits: 1}
model: {hidden: 16, layers: 1, heads: 2, kv_heads: 1, ffn: 32, context: 16}
pretrain: {max_steps: 0, batch: 8, check_problems: 8}
sampling: {max_new_tokens: 4}
algorithm: {groups_per_update: 4, responses_per_group: 4, minibatches: 1}
reference: {replicas: 0}
checkpoint: {every: 1000000}
)";

class ASignalToARealRun : public NamedRunsTest, public testing::WithParamInterface<StopSignal> {
 protected:
  ASignalToARealRun() : NamedRunsTest(kRealPolicy) {}

  fs::path cache() const { return folder() / "cache"; }
  /// `temper run` with these settings, and the signal once `reached`.
  Ended signaled(const Arguments& sets, const std::function<bool()>& reached) {
    Arguments more;
    for (const std::string& set : sets)
      more.insert(more.end(), {"--set", set});
    Temper run(arguments("run", more),
               {folder(),
                [cache = cache().string()] { ::setenv("TEMPER_CACHE", cache.c_str(), 1); },
                kTemperAsBuilt});
    await_file_state(run, reached);
    run.signal(GetParam().signal);
    return run.wait();
  }

 private:
  static void await_file_state(Temper& run, const std::function<bool()>& reached) {
    const RealClock clock;
    while (!reached()) {
      ASSERT_FALSE(run.has_ended()) << run.wait().output;
      ASSERT_LT(clock.now(), Time(kPatience)) << "waited in vain";
      ::poll(nullptr, 0, 20);
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Each, ASignalToARealRun, testing::ValuesIn(kStops), [](const auto& p) {
  return fmt::format("Sig{}", ::sigabbrev_np(p.param.signal));
});

TEST_P(ASignalToARealRun, WhileItsBaseIsMadeEndsItWithItsExitCodeAndLeavesNothingInTheCache) {
  const fs::path log = run_folder("run") / "logs" / "pretrain.log";
  const Ended ended =
      signaled({"pretrain={max_steps: 1000000, target_accuracy: 1, batch: 8, check_problems: 8}"},
               [&] { return !read_file(log).value_or("").empty(); });
  EXPECT_EQ(ended.status, GetParam().status) << ended.output;
  std::error_code none;
  EXPECT_EQ(std::distance(fs::directory_iterator(cache(), none), fs::directory_iterator()), 0);
}

TEST_P(ASignalToARealRun, WhileItEvaluatesEndsItWithItsExitCode) {
  const Ended ended = signaled({"evaluation={every: 1, problems: 9}"}, [&] {
    bool evaluates = false;
    std::ignore = orchestrator::read_event_log(
        run_folder("run") / "events.log", [&](const orchestrator::Record& record) {
          evaluates |= std::ranges::any_of(record.commands, [](const auto& c) {
            const auto* dispatch = std::get_if<command::Dispatch>(&c);
            return dispatch != nullptr && orchestrator::is_evaluation(dispatch->lease);
          });
          return Status();
        });
    return evaluates;
  });
  EXPECT_EQ(ended.status, GetParam().status) << ended.output;
  const Ended audit = temper({"audit", run_folder("run").string()});
  EXPECT_EQ(audit.status, 0) << audit.output;
}

}  // namespace
}  // namespace temper::test
