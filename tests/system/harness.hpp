// Runs the real programs, temper and temper-worker, as a user would, and looks at them from
// outside: through the process table, the run folder and events.log.
//
// Nothing here waits for a time: every wait is for an event, and kPatience is only how long a test
// that fails waits. What a test started ends with it, whatever ends the test.
#pragma once

#include "core/temporary_folder.hpp"
#include "orchestrator/record/event_log.hpp"

#include <gtest/gtest.h>
#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace temper::test {

inline constexpr Duration kPatience = std::chrono::seconds(45);

/// temper beside a temper-worker without torch engines, which starts in a small part of the time.
inline constexpr const char* kTemper = TEMPER_PROGRAM;
/// temper beside the temper-worker of this build.
inline constexpr const char* kTemperAsBuilt = TEMPER_PROGRAM_AS_BUILT;

/// A setting with which a run lasts long enough to have something done to it.
inline constexpr const char* kSlow = "synthetic.step_time=20ms";

/// A finished program: its exit code (or minus the signal) and what it printed.
struct Ended {
  int status = 0;
  std::string output;  ///< stdout and stderr.
};

using Arguments = std::vector<std::string>;

/// `temper ARGUMENTS`, under way.
class Temper {
 public:
  struct Options {
    std::filesystem::path folder;  ///< For its output; also its TMPDIR, which marks its processes.
    std::function<void()> handicap;  ///< Called in its process before it begins.
    std::string program = kTemper;
  };
  Temper(const Arguments& arguments, const Options& options);
  Temper(const Temper&) = delete;
  Temper& operator=(const Temper&) = delete;
  ~Temper();

  pid_t pid() const { return pid_; }
  bool has_ended();
  void signal(int number) const;
  /// Fails the test, and kills it, if it does not end in kPatience.
  Ended wait();

 private:
  const std::filesystem::path output_;
  pid_t pid_ = 0;
  int pidfd_ = -1;
  std::optional<int> status_;
};

/// Whether the process is there and no zombie.
bool is_alive(pid_t pid);

class Watch;

/// Each test has a folder of its own, and a run in it.
class SystemTest : public testing::Test {
 protected:
  using Records = std::vector<orchestrator::Record>;

  SystemTest();
  ~SystemTest() override;

  /// `temper run` of a small synthetic pipeline, changed by `sets`: 24 updates of 4 groups.
  Temper& run(const Arguments& sets = {}, std::function<void()> handicap = {});
  /// The next runs are of kTemperAsBuilt. For what has to happen while actors start, too: these
  /// load libtorch first.
  void run_as_built() { run_program(kTemperAsBuilt); }
  void run_program(std::string program) { program_ = std::move(program); }
  Temper& resume(const Arguments& sets = {});
  Ended temper(const Arguments& arguments);
  Temper& current() { return *runs_.back(); }

  std::filesystem::path run_dir() const { return folder() / "run"; }
  std::filesystem::path config() const { return folder() / "config.yaml"; }
  const std::filesystem::path& folder() const { return folder_.path(); }

  /// The whole records of events.log.
  Records records() const;
  /// Waits until `done(records)`; fails the test if the run ends before or it takes too long.
  void await(const std::function<bool(const Records&)>& done);
  void await_version(std::uint64_t version);
  /// Waits until every actor has a process; name to process id.
  std::map<std::string, pid_t> await_workers();
  std::map<std::string, pid_t> workers() const;
  /// The process of an actor, once there is one: the kernel may leave some out of a list of
  /// children that changes. 0: the run ended before, and the test has failed.
  pid_t await_worker(const std::string& name);
  /// Where workers of the run connect.
  std::string await_endpoint();
  /// Every process that any run of this test started and that is still there.
  std::vector<pid_t> processes() const;
  void await_no_processes();

  /// audit and replay accept the log, no group was trained twice, every update was made, and no
  /// process or temporary file is left.
  void expect_whole_run(std::uint64_t steps, std::size_t groups_per_update = 4);
  void expect_clean_log();

 private:
  std::string program_ = kTemper;
  TemporaryFolder folder_ = TemporaryFolder::create("tempersystem-").value();
  std::vector<std::unique_ptr<Temper>> runs_;
  std::unique_ptr<Watch> watch_;
};

/// Several runs of one configuration, each in a folder of its name.
class NamedRunsTest : public SystemTest {
 protected:
  /// Writes the configuration.
  explicit NamedRunsTest(std::string_view yaml);

  std::filesystem::path file() const { return folder() / "named.yaml"; }
  std::filesystem::path run_folder(const std::string& name) const { return folder() / name; }
  /// Of `temper`, to run it there.
  Arguments arguments(const std::string& name, const Arguments& more) const;
  /// All of its events.log; empty where there is none.
  std::string log_of(const std::string& name) const;
};

/// The groups of every update that counts: what a resume voided is left out.
std::vector<GroupId> trained_groups(const std::vector<orchestrator::Record>& records);

template <class E>
std::size_t count_events(const std::vector<orchestrator::Record>& records) {
  std::size_t n = 0;
  for (const auto& record : records)
    n += std::holds_alternative<E>(record.event) ? 1 : 0;
  return n;
}

/// Version after the last completed update; 0 before the first.
std::uint64_t last_version(const std::vector<orchestrator::Record>& records);

}  // namespace temper::test
