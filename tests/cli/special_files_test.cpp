// What is no file, in the place of each file that a command reads, with the real program: no
// command waits for it, none follows a link out of the folder, and a signal ends them all.
//
// TEMPER_CASES says how many of the combinations are tried (24 unless set, 0: all), spread evenly.
#include "core/files.hpp"
#include "core/null_ended.hpp"
#include "core/random.hpp"
#include "tests/support/temporary_folder.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <utility>

namespace temper::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kPatienceMs = 60'000;  // Never reached unless a command hangs.
constexpr std::string_view kSecret = "what-nobody-else-may-read";

struct Kind {
  const char* name;
  std::function<void(const fs::path& at, const fs::path& secret)> make;
};

std::vector<FileDescriptor>& held() {
  static std::vector<FileDescriptor> descriptors;
  return descriptors;
}

void make_socket(const fs::path& at) {
  held().emplace_back(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  ASSERT_LT(at.string().size(), sizeof name.sun_path);
  std::ranges::copy(at.string(), name.sun_path);
  ASSERT_EQ(::bind(held().back().get(), reinterpret_cast<const sockaddr*>(&name), sizeof name), 0);
}

const std::vector<Kind>& kinds() {
  const auto link = [](const char* to) {
    return [to](const fs::path& at, const fs::path&) { fs::create_symlink(to, at); };
  };
  static const std::vector<Kind> all{
      {"FIFO", [](const fs::path& at, const fs::path&) { ::mkfifo(at.c_str(), 0600); }},
      {"FIFO with a silent writer",
       [](const fs::path& at, const fs::path&) {
         ::mkfifo(at.c_str(), 0600);
         held().emplace_back(::open(at.c_str(), O_RDWR | O_CLOEXEC));
       }},
      {"link to a FIFO",
       [](const fs::path& at, const fs::path&) {
         ::mkfifo((at.string() + ".pipe").c_str(), 0600);
         fs::create_symlink(at.string() + ".pipe", at);
       }},
      {"socket", [](const fs::path& at, const fs::path&) { make_socket(at); }},
      {"folder", [](const fs::path& at, const fs::path&) { fs::create_directory(at); }},
      {"link to a secret",
       [](const fs::path& at, const fs::path& secret) { fs::create_symlink(secret, at); }},
      {"link to itself",
       [](const fs::path& at, const fs::path&) { fs::create_symlink(at.filename(), at); }},
      {"link to nothing", link("/nowhere/x")},
      {"link to an endless device", link("/dev/zero")},
      {"link to random numbers", link("/dev/urandom")},
      {"link to a terminal or none", link("/dev/tty")},
      {"link to a file of /proc", link("/proc/self/environ")},
      {"hole",
       [](const fs::path& at, const fs::path&) {
         const FileDescriptor fd(::open(at.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
         EXPECT_EQ(::ftruncate(fd.get(), off_t{1} << 24), 0);
       }},
      {"empty file",
       [](const fs::path& at, const fs::path&) {
         const FileDescriptor fd(::open(at.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
       }},
  };
  return all;
}

constexpr std::array kFiles{"config.yaml",
                            "events.log",
                            "live.json",
                            "metrics.jsonl",
                            "samples.jsonl",
                            "certificates.jsonl",
                            "predictions.jsonl",
                            "summary.json",
                            "trace.json.gz",
                            "timeline",
                            "timeline/0.jsonl",
                            "timeline/7.jsonl"};

/// RUN and RUNS stand for the run's folder and the folder that holds it.
const std::vector<std::vector<std::string>> kCommands{
    {"serve", "RUNS", "--address", "0"},
    {"serve", "RUN", "--address", "0"},
    {"runs", "RUNS"},
    {"report", "RUN"},
    {"report", "RUN", "--html"},
    {"samples", "RUN"},
    {"watch", "RUN", "--plain"},
    {"diff", "RUN", "RUN"},
    {"audit", "RUN"},
    {"fsck", "RUN"},
    {"replay", "RUN"},
    {"check", "RUN/config.yaml"},
    {"check", "RUNS/extends.yaml"},
    {"run", "--resume", "RUN", "--driver", "in-process", "--plain"},
};

/// What a GET brings; "nothing came" in kPatienceMs.
std::string get(std::uint16_t port, const std::string& path, const std::string& token) {
  const FileDescriptor fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval patience{kPatienceMs / 1000, 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0)
    return "not connected";
  const std::string request = fmt::format(
      "GET {} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nConnection: "
      "close\r\n\r\n",
      path,
      token);
  ::send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL);
  std::string got;
  std::array<char, 65536> piece{};
  for (ssize_t n = 1; n > 0;) {
    n = ::recv(fd.get(), piece.data(), piece.size(), 0);
    if (n < 0)
      return "nothing came";
    got.append(piece.data(), static_cast<std::size_t>(n));
  }
  return got;
}

/// `temper WORDS` with its output in a pipe. Killed at the end, whatever it does.
class Process {
 public:
  explicit Process(std::vector<std::string> words) {
    words.insert(words.begin(), TEMPER_PROGRAM);
    std::vector<char*> arguments = null_ended(words);
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    output_ = FileDescriptor(ends[0]);
    const FileDescriptor theirs(ends[1]);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::dup2(::open("/dev/null", O_RDONLY), 0);
      ::dup2(theirs.get(), 1);
      ::dup2(theirs.get(), 2);
      ::execv(arguments[0], arguments.data());
      ::_exit(127);
    }
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
  }
  /// Reads until `end` has come, or to the end of the output. False: neither in kPatienceMs.
  bool read_until(std::string_view end = {}) {
    pollfd p{output_.get(), POLLIN, 0};
    std::array<char, 65536> piece{};
    while (end.empty() || output.find(end) == std::string::npos) {
      if (::poll(&p, 1, kPatienceMs) <= 0)
        return false;
      const ssize_t n = ::read(output_.get(), piece.data(), piece.size());
      if (n <= 0)
        return true;
      output.append(piece.data(), static_cast<std::size_t>(n));
    }
    return true;
  }
  void signal(int number) const { ::kill(pid_, number); }
  /// After the end of its output: its exit code, or minus the signal.
  int wait() {
    int status = 0;
    ::waitpid(std::exchange(pid_, 0), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  std::string output;

 private:
  FileDescriptor output_;
  pid_t pid_ = 0;
};

/// Asks a served page for all that it has of the run, and ends it.
void ask_and_end(Process& server, std::string& told) {
  ASSERT_TRUE(server.read_until("(Ctrl-C stops the server)")) << "it serves no page";
  const std::size_t colon = server.output.find("127.0.0.1:") + 10;
  std::uint16_t port = 0;
  std::from_chars(server.output.data() + colon, server.output.data() + server.output.size(), port);
  const std::size_t token = server.output.find("token=") + 6;
  for (const char* path : {"/api/runs",
                           "/metrics",
                           "/api/runs/a/live",
                           "/api/runs/a/metrics",
                           "/api/runs/a/timeline",
                           "/api/runs/a/samples",
                           "/api/runs/a/losses",
                           "/api/runs/a/config",
                           "/api/runs/b/config"}) {
    const std::string answer = get(port, path, server.output.substr(token, 32));
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 ")) << path << ": " << answer;
    told += answer;
  }
  server.signal(SIGTERM);
}

class SpecialFilesOfARun : public testing::Test {
 protected:
  void SetUp() override {
    Process run({"run",
                 TEMPER_SOURCE_DIR "/configs/cm384_pangu.yaml",
                 "--driver",
                 "in-process",
                 "--plain",
                 "--set",
                 "steps=2",
                 "--set",
                 "run_dir=" + whole_.string()});
    ASSERT_TRUE(run.read_until()) << run.output;
    ASSERT_EQ(run.wait(), 0) << run.output;
    fs::create_directories(secret_.parent_path());
    ASSERT_TRUE(write_file_atomically(secret_, std::string(kSecret) + "\n"));
  }

  /// The run with this in the place of that file, beside a whole one.
  void make_runs(const Kind& kind, const fs::path& file) {
    fs::remove_all(runs_);
    fs::create_directories(runs_);
    fs::copy(whole_, runs_ / "a", fs::copy_options::recursive);
    fs::copy(whole_, runs_ / "b", fs::copy_options::recursive);
    fs::remove_all(runs_ / "a" / file);
    fs::create_directories((runs_ / "a" / file).parent_path());
    kind.make(runs_ / "a" / file, secret_);
    fs::create_directory_symlink(secret_.parent_path(), runs_ / "linked");
    ASSERT_TRUE(
        write_file_atomically(runs_ / "extends.yaml", "extends: a/" + file.string() + "\n"));
  }

  void try_one(const Kind& kind, const char* file, const std::vector<std::string>& command) {
    make_runs(kind, file);
    std::vector<std::string> words = command;
    for (std::string& word : words) {
      if (word.starts_with("RUNS"))
        word.replace(0, 4, runs_.string());
      else if (word.starts_with("RUN"))
        word.replace(0, 3, (runs_ / "a").string());
    }
    Process process(words);
    std::string told;
    if (command.front() == "serve")
      ask_and_end(process, told);
    ASSERT_TRUE(process.read_until()) << "it has not ended: " << process.output;
    const int code = process.wait();
    EXPECT_GE(code, 0) << "killed by signal " << -code;
    EXPECT_LT(code, 5) << process.output;
    told += process.output;
    if (fs::exists(runs_ / "a/report.html"))
      told += read_file(runs_ / "a/report.html").value_or("");
    // What shows a run follows no link in its folder; the others read what their user names.
    constexpr std::array<std::string_view, 6> kShows{
        "serve", "runs", "report", "samples", "watch", "diff"};
    if (std::ranges::count(kShows, std::string_view(command.front())) > 0) {
      EXPECT_EQ(told.find(kSecret), std::string::npos);
    }
    EXPECT_EQ(read_file(secret_).value_or(""), std::string(kSecret) + "\n") << "it was written to";
    held().clear();
  }

  const test::TemporaryFolder folder_;
  const fs::path whole_ = folder_ / "whole";
  const fs::path runs_ = folder_ / "runs";
  const fs::path secret_ = folder_ / "private/secret";
};

TEST_F(SpecialFilesOfARun, AreNeitherWaitedForNorShownByAnyCommand) {
  const std::size_t all = kinds().size() * kFiles.size() * kCommands.size();
  const char* const asked = std::getenv("TEMPER_CASES");  // NOLINT(concurrency-mt-unsafe)
  std::size_t cases = asked != nullptr ? std::strtoul(asked, nullptr, 10) : 24;
  cases = cases == 0 ? all : std::min(cases, all);
  for (std::size_t i = 0; i < cases; ++i) {
    const std::size_t n = permuted(i, all, 1);
    const Kind& kind = kinds()[n % kinds().size()];
    const char* const file = kFiles[n / kinds().size() % kFiles.size()];
    const auto& command = kCommands[n / kinds().size() / kFiles.size()];
    SCOPED_TRACE(fmt::format("{}: {} as {}", fmt::join(command, " "), file, kind.name));
    try_one(kind, file, command);
    if (HasFatalFailure())
      return;
  }
}

TEST_F(SpecialFilesOfARun, AnEmptyConfigurationIsNamedByReportAndDiff) {
  make_runs(kinds().back(), "config.yaml");
  const std::string run = (runs_ / "a").string(), whole = (runs_ / "b").string();
  const std::string expected = run +
                               "/config.yaml: expected keys and values such as `name: first-run`, "
                               "found an empty file";
  const auto told = [](const std::vector<std::string>& words, int code) {
    Process process(words);
    EXPECT_TRUE(process.read_until()) << process.output;
    EXPECT_EQ(process.wait(), code) << process.output;
    return process.output;
  };
  EXPECT_NE(told({"report", run}, 0).find("warning: " + expected), std::string::npos);
  EXPECT_NE(told({"diff", run, whole}, 2).find(expected), std::string::npos);
  EXPECT_EQ(told({"report", whole}, 0).find("warning"), std::string::npos);
}

/// Those of the report of this fault.
TEST_F(SpecialFilesOfARun, AFifoHangsNoPageAndNoCheck) {
  for (const char* file : {"live.json", "metrics.jsonl"})
    try_one(kinds()[0], file, kCommands[0]);
  try_one(kinds()[0], "config.yaml", {"check", "RUN/config.yaml"});
  try_one(kinds()[0], "config.yaml", {"check", "RUNS/extends.yaml"});
  try_one(kinds()[5], "config.yaml", kCommands[0]);
}

}  // namespace
}  // namespace temper::cli
