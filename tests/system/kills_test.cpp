// The head of a run is killed at system calls that change its files, and the run is resumed until
// it ends: nothing that it trained on is lost or repeated. The run is on simulated hardware, in one
// process and synchronous, so that what it trains on does not depend on when it is killed. Twelve
// runs with some thirty kills; TEMPER_KILLS=1000 in the environment asks for as many. With power
// failures what was written and not synced is lost as well.
#include "core/files.hpp"
#include "core/json_document.hpp"
#include "core/random.hpp"
#include "orchestrator/fsck/fsck.hpp"
#include "orchestrator/record/audit_run.hpp"
#include "orchestrator/record/event_log.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/temporary_folder.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <set>
#include <sstream>
#include <vector>

namespace temper::test {
namespace {

namespace fs = std::filesystem;

enum class Loss { Process, Power };

constexpr const char* kConfig = R"(name: killed
hardware: simulated
policy: synthetic
steps: 6
algorithm: {groups_per_update: 4, responses_per_group: 4, minibatches: 1}
staleness: {bound: 0}
checkpoint: {every: 1, keep: 2}
placement: {cards: 8, rollout_cards: 4, reference_cards: 2}
rollout: {replicas: 2, concurrency: 16}
simulation:
  cluster: cm384
  model: deepseek-v2-2-layers
  prompt: {kind: constant, mean: 64}
  response: {mean: 256, p99_over_median: 4, cap: 1024}
  rollout: {ep: 4}
  trainer: {ep: 4, capacity_factor: 1.25}
  experts: {loads: drifting, drift: 0.3}
)";

std::uint64_t kills() {
  const char* text = std::getenv("TEMPER_KILLS");
  return text == nullptr ? 30 : std::strtoull(text, nullptr, 10);
}

/// What was trained on: how often each group.
std::map<std::uint64_t, int> trained_groups(const fs::path& run) {
  std::map<std::uint64_t, int> groups;
  std::istringstream lines(read_file(run / "certificates.jsonl").value());
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::json certificate = parse_json(line);
    for (const auto& group : certificate.at("groups"))
      ++groups[group.at("group").get<std::uint64_t>()];
  }
  return groups;
}

/// By step, as the lines of metrics.jsonl have it: the share of copies that experts dropped.
std::vector<double> dropped_copies(const fs::path& run) {
  std::vector<double> steps;
  std::istringstream lines(read_file(run / "metrics.jsonl").value());
  for (std::string line; std::getline(lines, line);)
    steps.push_back(parse_json(line).at("experts").at("dropped").get<double>());
  return steps;
}

class AHeadThatIsKilled : public ::testing::TestWithParam<Loss> {
 protected:
  AHeadThatIsKilled() { EXPECT_TRUE(write_file_atomically(config_, kConfig)); }

  fs::path run() const { return folder_ / "run"; }

  /// `temper run`, or --resume, killed at its n-th call; 0: never. Exit status; -1: it was killed.
  int temper(bool resume, std::uint64_t kill_at, const char* set = "seed=1") {
    const pid_t child = ::fork();
    if (child == 0) {
      ::setenv("LD_PRELOAD", TEMPER_KILLED_AT_CALL, 1);
      ::setenv("TEMPER_KILL_BELOW", run().c_str(), 1);
      ::setenv("TEMPER_KILL_AT", std::to_string(kill_at).c_str(), 1);
      ::setenv("TEMPER_KILL_COUNT", (folder_ / "count").c_str(), 1);
      if (GetParam() == Loss::Power)
        ::setenv("TEMPER_POWER_FAILS", "1", 1);
      if (std::freopen((folder_ / "out").c_str(), "w", stdout) == nullptr ||
          std::freopen((folder_ / "err").c_str(), "w", stderr) == nullptr)
        ::_exit(126);
      const std::string run_dir = "run_dir=" + run().string();
      const fs::path resumed = run();
      std::vector<const char*> words{"temper", "run", "--driver", "in-process", "--json"};
      if (resume)
        words.insert(words.end(), {"--resume", resumed.c_str(), "--set", set, nullptr});
      else
        words.insert(words.end(),
                     {"--set", run_dir.c_str(), "--set", set, config_.c_str(), nullptr});
      ::execv(TEMPER_PROGRAM, const_cast<char* const*>(words.data()));
      ::_exit(127);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  std::uint64_t calls() const {
    return std::strtoull(read_file(folder_ / "count").value().c_str(), nullptr, 10);
  }
  std::string said() const { return read_file(folder_ / "err").value_or(""); }
  bool has_checkpoints() const {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(run() / "checkpoints", error)) {
      if (entry.path().extension().empty())
        return true;
    }
    return false;
  }
  /// Goes on with the run until it ends, killed now and then; false: that is a failure.
  bool end_run(Random& random, std::uint64_t whole, std::uint64_t& killed) {
    bool resume = false;
    for (int tries = 0; tries < 50; ++tries) {
      const bool again = tries == 0 || (tries < 20 && random.chance(0.5));
      const int status = temper(resume, again ? 1 + random.below(whole) : 0);
      if (status == 0)
        return true;
      if (status < 0) {
        ++killed;
        resume = fs::exists(run() / "events.log");
        continue;
      }
      // Killed before anything was recorded: there is nothing to go on from.
      if (has_checkpoints())
        return false;
      fs::remove_all(run());
      resume = false;
    }
    return false;
  }

 private:
  const TemporaryFolder folder_;
  const fs::path config_ = folder_ / "config.yaml";
};

TEST_P(AHeadThatIsKilled, AtAnySystemCallLosesAndRepeatsNothing) {
  ASSERT_EQ(temper(false, 0), 0) << said();
  const auto whole = trained_groups(run());
  const auto dropped = dropped_copies(run());
  ASSERT_EQ(dropped.size(), 6U);
  ASSERT_NE(dropped.front(), dropped.back());
  const std::uint64_t calls_of_a_run = calls();
  ASSERT_GT(calls_of_a_run, 50U);
  const Seed seed;
  Random random(seed.value(), seed.stream());
  std::uint64_t killed = 0, runs = 0;
  while (killed < kills()) {
    fs::remove_all(run());
    ++runs;
    ASSERT_TRUE(end_run(random, calls_of_a_run, killed)) << "run " << runs << ": " << said();
    ASSERT_EQ(trained_groups(run()), whole) << "run " << runs;
    ASSERT_EQ(dropped_copies(run()), dropped) << "run " << runs;
    const auto audit = orchestrator::audit_run(run());
    ASSERT_TRUE(audit) << audit.error().context;
    ASSERT_EQ(audit->violations, std::vector<std::string>{}) << "run " << runs;
  }
  RecordProperty("kills", std::to_string(killed));
  fmt::print("{} kills in {} runs of {} calls\n", killed, runs, calls_of_a_run);
}

/// What `audit` and `fsck` find wrong in a run whose process was killed. Figures may be missing
/// that were being made when it was, of the end that is number `ends` in the log, or a later one.
std::string alarm(const fs::path& run, int ends) {
  const auto audit = orchestrator::audit_run(run);
  if (!audit || !audit->violations.empty())
    return audit ? audit->violations.front() : audit.error().context;
  int ended = 0;
  EXPECT_TRUE(orchestrator::scan_event_log(
      run / "events.log",
      [&](const orchestrator::Record& record, const orchestrator::LogPosition&) {
        for (const auto& command : record.commands)
          ended += std::holds_alternative<orchestrator::command::Finish>(command) ? 1 : 0;
        return Status();
      }));
  const auto checked = orchestrator::check_run(run, orchestrator::Repair::No);
  if (!checked)
    return checked.error().context;
  using State = orchestrator::FileState;
  for (const orchestrator::CheckedFile& file : checked->files) {
    const bool right = file.state == State::Whole || file.state == State::Aside ||
                       file.state == State::Unchecked || file.state == State::Torn;
    if (!right && (file.name != "outputs.manifest" || ended < ends))
      return file.name + " is " + std::string(name_of(file.state)) + ": " + file.what;
  }
  return {};
}

/// How many times events.log says that settings are other ones.
std::size_t recorded_changes(const fs::path& run) {
  std::size_t changes = 0;
  EXPECT_TRUE(orchestrator::scan_event_log(
      run / "events.log",
      [&](const orchestrator::Record& record, const orchestrator::LogPosition&) {
        const auto* resumed = std::get_if<orchestrator::event::Resumed>(&record.event);
        changes += resumed != nullptr && !resumed->changes.empty() ? 1 : 0;
        return Status();
      }));
  return changes;
}

TEST_P(AHeadThatIsKilled,
       AtAnySystemCallOfAResumeWithAnotherSettingIsFollowedByOneThatTheLogKnows) {
  ASSERT_EQ(temper(false, 0), 0) << said();
  const fs::path first = run().string() + ".first";
  fs::copy(run(), first, fs::copy_options::recursive);
  bool was_killed = true;
  for (std::uint64_t at = 1; was_killed && at <= 400; at = at < 40 ? at + 1 : at + 23) {
    fs::remove_all(run());
    fs::copy(first, run(), fs::copy_options::recursive);
    was_killed = temper(true, at, "steps=8") < 0;
    if (GetParam() == Loss::Process) {  // power takes lines that were not synced, of any file
      ASSERT_EQ(alarm(run(), was_killed ? 2 : 3), "") << "killed at call " << at;
    }
    ASSERT_EQ(temper(true, 0), 0) << "killed at call " << at << ": " << said();
    const std::string config = read_file(run() / "config.yaml").value();
    const bool changed = config.find("steps: 8") != std::string::npos;
    EXPECT_EQ(recorded_changes(run()), changed ? 1U : 0U) << "killed at call " << at;
    const auto audit = orchestrator::audit_run(run());
    ASSERT_TRUE(audit) << audit.error().context;
    ASSERT_EQ(audit->violations, std::vector<std::string>{}) << "killed at call " << at;
    ASSERT_EQ(audit->steps, changed ? 8U : 6U) << "killed at call " << at;
  }
  EXPECT_FALSE(was_killed) << "a resume has more calls than were tried";
}

INSTANTIATE_TEST_SUITE_P(Losses,
                         AHeadThatIsKilled,
                         ::testing::Values(Loss::Process, Loss::Power),
                         [](const auto& p) {
                           return p.param == Loss::Process ? "OfItsProcess" : "OfPower";
                         });

}  // namespace
}  // namespace temper::test
