#include "tests/system/harness.hpp"

#include "core/clock.hpp"
#include "orchestrator/scheduler/state/config.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <sstream>

namespace temper::test {
namespace {

namespace fs = std::filesystem;
namespace event = orchestrator::event;
using orchestrator::Record;

constexpr int kPollMs = 20;

constexpr std::string_view kConfig = R"(name: system
policy: synthetic
steps: 24
algorithm:
  groups_per_update: 4
  responses_per_group: 4
rollout:
  replicas: 2
  concurrency: 8
synthetic:
  tokens: 16
  step_time: 4ms
checkpoint:
  every: 5
transport:
  heartbeat: 100ms
)";

std::string slurp(const fs::path& path) {
  const auto content = read_file(path);
  return content ? *content : "";
}

/// The part of /proc/PID/stat from the state on.
std::string state_of(pid_t pid) {
  const std::string stat = slurp(fmt::format("/proc/{}/stat", pid));
  const auto end = stat.rfind(')');
  return end == std::string::npos ? "" : stat.substr(end + 2);
}

/// Strings with a NUL behind each.
std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, '\0');)
    out.push_back(part);
  return out;
}

std::string option_of(const std::vector<std::string>& command, std::string_view name) {
  for (std::size_t i = 0; i + 1 < command.size(); ++i) {
    if (command[i] == name)
      return command[i + 1];
  }
  return "";
}

[[noreturn]] void become_temper(const fs::path& output,
                                const std::vector<char*>& argv,
                                const Temper::Options& options,
                                pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent)
    ::_exit(126);
  ::setenv("TMPDIR", options.folder.c_str(), 1);
  const int null = ::open("/dev/null", O_RDONLY);
  const int out = ::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0644);
  ::dup2(null, 0);
  ::dup2(out, 1);
  ::dup2(out, 2);
  if (options.handicap)
    options.handicap();
  ::execv(argv[0], argv.data());
  ::_exit(127);
}

fs::path output_file(const fs::path& folder) {
  static int count = 0;
  return folder / fmt::format("output-{}.txt", ++count);
}

}  // namespace

Temper::Temper(const Arguments& arguments, const Options& options)
    : output_(output_file(options.folder)) {
  std::vector<std::string> words{options.program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words)
    argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ == 0)
    become_temper(output_, argv, options, parent);
  ::setpgid(pid_, pid_);
  pidfd_ = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0U));
  EXPECT_GE(pidfd_, 0) << std::strerror(errno);
}

Temper::~Temper() {
  if (!status_) {
    ::kill(-pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  ::close(pidfd_);
}

bool Temper::has_ended() {
  if (status_)
    return true;
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) != pid_)
    return false;
  status_ = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  return true;
}

void Temper::signal(int number) const {
  ::kill(pid_, number);
}

Ended Temper::wait() {
  pollfd p{pidfd_, POLLIN, 0};
  const auto patience = std::chrono::duration_cast<std::chrono::milliseconds>(kPatience).count();
  ::poll(&p, 1, static_cast<int>(patience));
  if (!has_ended()) {
    ADD_FAILURE() << "temper did not end in time";
    ::kill(-pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    status_ = -SIGKILL;
  }
  return {*status_, slurp(output_)};
}

bool is_alive(pid_t pid) {
  const std::string state = state_of(pid);
  return !state.empty() && state.front() != 'Z' && state.front() != 'X';
}

/// Tells when files of folders change. One for a whole test: the kernel may take a second to close
/// it, in which the run that is watched goes on.
class Watch {
 public:
  Watch() : fd_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {}
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  ~Watch() { ::close(fd_); }
  /// Does nothing where there is no such folder, or it is watched already.
  void add(const fs::path& folder) {
    ::inotify_add_watch(fd_, folder.c_str(), IN_CREATE | IN_MODIFY | IN_MOVED_TO | IN_DELETE);
  }
  void wait() {
    pollfd p{fd_, POLLIN, 0};
    ::poll(&p, 1, kPollMs);
    std::array<char, 4096> events;
    while (::read(fd_, events.data(), events.size()) > 0) {
    }
  }

 private:
  int fd_;
};

SystemTest::SystemTest() : watch_(std::make_unique<Watch>()) {
  EXPECT_TRUE(write_file_atomically(config(), kConfig));
}

SystemTest::~SystemTest() {
  runs_.clear();
  await_no_processes();
  if (HasFailure()) {
    for (const auto& entry : fs::recursive_directory_iterator(folder())) {
      const fs::path& file = entry.path();
      if (file.extension() == ".txt" || file.parent_path().filename() == "logs")
        fmt::print(
            "--- {}\n{}", file.string(), entry.file_size() < 65536 ? slurp(file) : "(long)\n");
    }
  }
}

Temper& SystemTest::run(const Arguments& sets, std::function<void()> handicap) {
  Arguments arguments{"run", config().string(), "--set", "run_dir=" + run_dir().string()};
  for (const std::string& set : sets) {
    arguments.push_back("--set");
    arguments.push_back(set);
  }
  runs_.push_back(std::make_unique<Temper>(
      arguments, Temper::Options{folder(), std::move(handicap), program_}));
  return current();
}

Temper& SystemTest::resume(const Arguments& sets) {
  Arguments arguments{"run", "--resume", run_dir().string()};
  for (const std::string& set : sets) {
    arguments.push_back("--set");
    arguments.push_back(set);
  }
  runs_.push_back(std::make_unique<Temper>(arguments, Temper::Options{folder(), {}, program_}));
  return current();
}

Ended SystemTest::temper(const Arguments& arguments) {
  return Temper(arguments, {folder(), {}, program_}).wait();
}

SystemTest::Records SystemTest::records() const {
  Records out;
  std::ignore = orchestrator::read_event_log(run_dir() / "events.log", [&](const Record& r) {
    out.push_back(r);
    return Status();
  });
  return out;
}

void SystemTest::await(const std::function<bool(const Records&)>& done) {
  const RealClock clock;
  while (clock.now() < Time(kPatience)) {
    // Watched before it is read: what is written in between is seen by one of the two.
    watch_->add(fs::exists(run_dir()) ? run_dir() : folder());
    const bool ended = current().has_ended();
    if (done(records()))
      return;
    if (ended) {
      FAIL() << "the run ended before: " << current().wait().output;
    }
    watch_->wait();
  }
  FAIL() << "waited in vain";
}

void SystemTest::await_version(std::uint64_t version) {
  await([version](const Records& r) { return last_version(r) >= version; });
}

std::map<std::string, pid_t> SystemTest::workers() const {
  std::map<std::string, pid_t> out;
  const pid_t parent = runs_.back()->pid();
  std::istringstream children(slurp(fmt::format("/proc/{0}/task/{0}/children", parent)));
  for (pid_t pid = 0; children >> pid;) {
    const auto command = split(slurp(fmt::format("/proc/{}/cmdline", pid)));
    const std::string name = option_of(command, "--name");
    if (!name.empty() && is_alive(pid))
      out[name] = pid;
  }
  return out;
}

std::map<std::string, pid_t> SystemTest::await_workers() {
  std::map<std::string, pid_t> found;
  await([&](const Records& r) {
    if (r.empty())
      return false;
    const auto* started = std::get_if<event::Started>(&r.front().event);
    found = workers();
    return started != nullptr && found.size() == started->config->actors.size();
  });
  return found;
}

pid_t SystemTest::await_worker(const std::string& name) {
  pid_t pid = 0;
  await([&](const Records&) {
    pid = workers()[name];
    return pid > 0;
  });
  return pid;
}

std::string SystemTest::await_endpoint() {
  const auto found = await_workers();
  if (found.empty())
    return "";
  return option_of(split(slurp(fmt::format("/proc/{}/cmdline", found.begin()->second))),
                   "--connect");
}

std::vector<pid_t> SystemTest::processes() const {
  std::vector<pid_t> out;
  const std::string mark = "TMPDIR=" + folder().string();
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error != std::errc() || end != name.data() + name.size())
      continue;
    const auto environment = split(slurp(entry.path() / "environ"));
    if (std::find(environment.begin(), environment.end(), mark) != environment.end() &&
        is_alive(pid)) {
      out.push_back(pid);
    }
  }
  return out;
}

void SystemTest::await_no_processes() {
  const RealClock clock;
  std::vector<pid_t> left = processes();
  while (!left.empty() && clock.now() < Time(kPatience)) {
    ::poll(nullptr, 0, kPollMs);
    left = processes();
  }
  for (const pid_t pid : left)
    ADD_FAILURE() << "left: process " << pid << ": " << slurp(fmt::format("/proc/{}/cmdline", pid));
}

void SystemTest::expect_clean_log() {
  const Ended audit = temper({"audit", run_dir().string()});
  EXPECT_EQ(audit.status, 0) << audit.output;
  const Ended replay = temper({"replay", run_dir().string()});
  EXPECT_EQ(replay.status, 0) << replay.output;
  const std::vector<GroupId> trained = trained_groups(records());
  const std::set<GroupId> distinct(trained.begin(), trained.end());
  EXPECT_EQ(distinct.size(), trained.size()) << "a group was trained twice";
}

void SystemTest::expect_whole_run(std::uint64_t steps, std::size_t groups_per_update) {
  expect_clean_log();
  const Records all = records();
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(last_version(all), steps);
  EXPECT_EQ(trained_groups(all).size(), steps * groups_per_update);
  EXPECT_EQ(processes(), std::vector<pid_t>{});
}

std::vector<GroupId> trained_groups(const std::vector<Record>& records) {
  std::vector<std::pair<std::uint64_t, GroupId>> trained;
  for (const Record& record : records) {
    if (const auto* resumed = std::get_if<event::Resumed>(&record.event)) {
      std::erase_if(trained, [&](const auto& t) { return t.first > resumed->sequence; });
    } else if (const auto* update = std::get_if<event::Trained>(&record.event)) {
      for (const GroupId group : update->groups)
        trained.emplace_back(record.sequence, group);
    }
  }
  std::vector<GroupId> groups;
  for (const auto& [sequence, group] : trained)
    groups.push_back(group);
  return groups;
}

std::uint64_t last_version(const std::vector<Record>& records) {
  for (auto record = records.rbegin(); record != records.rend(); ++record) {
    if (const auto* update = std::get_if<event::Trained>(&record->event))
      return update->version.value();
  }
  return 0;
}

// --- Runs by name

NamedRunsTest::NamedRunsTest(std::string_view yaml) {
  EXPECT_TRUE(write_file_atomically(file(), yaml));
}

Arguments NamedRunsTest::arguments(const std::string& name, const Arguments& more) const {
  Arguments all{"run", file().string(), "--plain", "--set", "run_dir=" + run_folder(name).string()};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::string NamedRunsTest::log_of(const std::string& name) const {
  return read_file(run_folder(name) / "events.log").value_or("");
}

}  // namespace temper::test
