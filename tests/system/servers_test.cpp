// Whole runs whose responses come from inference servers that we start: fakes, and killed.
#include "core/random.hpp"
#include "tests/support/seed.hpp"
#include "tests/system/harness.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <cstdio>
#include <fstream>

namespace temper::test {
namespace {

namespace event = orchestrator::event;

/// 14: the tokens of the addition task.
constexpr const char* kServer =
    "{0}.engine.start=python3 " TEMPER_SOURCE_DIR
    "/tests/support/fake_server.py --kind {1} --model {{model}} --host {{host}} --port {{port}} "
    "--vocabulary {2} --token-seconds 0.002";

class ServedRun : public SystemTest, public testing::WithParamInterface<const char*> {
 protected:
  Arguments served(const char* role = "rollout", int vocabulary = 14) const {
    return {fmt::format("{}.engine.kind={}", role, GetParam()),
            fmt::format(fmt::runtime(kServer), role, GetParam(), vocabulary),
            "sampling.max_new_tokens=8"};
  }
  /// The server that this actor started last; 0: none yet.
  pid_t server_of(const std::string& actor) const {
    std::ifstream log(run_dir() / "logs" / (actor + ".server.log"));
    int port = 0, pid = 0;
    for (std::string line; std::getline(log, line);)
      std::sscanf(line.c_str(), "listening on %d as %d", &port, &pid);
    return pid;
  }
};
INSTANTIATE_TEST_SUITE_P(Servers, ServedRun, testing::Values("vllm", "sglang"), [](const auto& p) {
  return std::string(p.param);
});

TEST_P(ServedRun, IsWholeAndLeavesNoServerBehind) {
  const Ended ended = run(served()).wait();
  EXPECT_EQ(ended.status, 0) << ended.output;
  expect_whole_run(24);
}

TEST_P(ServedRun, IsScoredByAReferenceServerThatIsKilledOnTheWay) {
  run(served("reference", 512));  // What the synthetic rollout makes goes beyond the task.
  for (const std::uint64_t version : {3U, 8U, 13U}) {
    await_version(version);
    ASSERT_GT(server_of("reference-0"), 0);
    ::kill(server_of("reference-0"), SIGKILL);
  }
  const Ended ended = current().wait();
  EXPECT_EQ(ended.status, 0) << ended.output;
  expect_whole_run(24);
  EXPECT_EQ(count_events<event::ActorDown>(records()), 0U);
}

TEST_P(ServedRun, GoesOnAfterTwentyKillsOfItsServers) {
  const Seed seed;
  Random random(seed.value(), seed.stream());
  run(served());
  for (std::uint64_t version = 1; version <= 20; ++version) {
    await_version(version);
    const std::string actor = fmt::format("rollout-{}", random.below(2));
    const pid_t server = server_of(actor);
    ASSERT_GT(server, 0);
    ::kill(server, SIGKILL);  // It may be on its way back from the last one.
  }
  const Ended ended = current().wait();
  EXPECT_EQ(ended.status, 0) << ended.output;
  expect_whole_run(24);
  EXPECT_EQ(count_events<event::ActorDown>(records()), 0U);  // Its actor outlives a server.
}

}  // namespace
}  // namespace temper::test
