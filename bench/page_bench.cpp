// Measures the cost of the dashboard and the exporters for the run that they show: trained tokens/s
// and processor time of the quickstart with them over the same without them.
//
//   page_bench [ROUNDS [UPDATES]]      default 6 rounds of four runs of 150 updates
//
//   without  no dashboard, no samples, no event files, no alarms
//   with     all of them and metric names of two other systems; a browser's stream open all the
//            time, and a scrape of /metrics every two seconds
//
// The speed of a machine varies between runs by more than the effect. So both run at the same time,
// each on one core (placement: colocated, one card), then again with swapped cores: the ratio of a
// round is the geometric mean of the two. Everything that the dashboard needs, including the
// browser and the scrapes, runs on the core of its run.
#include "actors/runtime/process.hpp"
#include "core/file_descriptor.hpp"
#include "core/files.hpp"
#include "core/json_document.hpp"
#include "core/temporary_folder.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sched.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace temper {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

struct Outcome {
  double trained_per_s = 0;
  double cpu_s = 0;   ///< For all processes of the run.
  double head_s = 0;  ///< For the orchestrator alone, which does not depend on random engine work.
  std::size_t taken = 0, scrapes = 0;
};

struct Page {
  std::uint16_t port = 0;  ///< 0: not printed yet.
  std::string token;
};

/// Parses "page at http://127.0.0.1:PORT/?token=TOKEN".
Page page_in(const fs::path& output) {
  const std::string text = read_file(output).value_or("");
  const std::size_t at = text.find("http://127.0.0.1:");
  const std::size_t token = text.find("token=", at);
  const std::size_t end = text.find('\n', token);
  if (at == std::string::npos || token == std::string::npos || end == std::string::npos)
    return {};
  return {static_cast<std::uint16_t>(std::atoi(text.c_str() + at + 17)),
          text.substr(token + 6, end - token - 6)};
}

/// Sends a request and reads until the server closes or `stop`; returns the number of bytes. Zero:
/// the request was refused, as before the run exists.
std::size_t ask(const Page& page, const std::string& what, const std::atomic<bool>& stop) {
  const FileDescriptor fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval patience{0, 200000};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(page.port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0)
    return 0;
  const std::string request = fmt::format(
      "GET {} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nAccept-Encoding: "
      "gzip\r\nConnection: close\r\n\r\n",
      what,
      page.token);
  if (::send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0)
    return 0;
  std::array<char, 65536> piece{};
  std::size_t taken = 0;
  while (!stop) {
    const ssize_t n = ::recv(fd.get(), piece.data(), piece.size(), 0);
    if (n == 0 || (n < 0 && errno != EAGAIN))
      break;
    if (taken == 0 && n > 12 && std::string_view(piece.data(), 12) != "HTTP/1.1 200") {
      std::this_thread::sleep_for(50ms);
      return 0;
    }
    taken += static_cast<std::size_t>(std::max<ssize_t>(n, 0));
  }
  return taken;
}

/// Processor time of a process that has ended and was not waited for, without its children.
double own_seconds(pid_t pid) {
  const std::string text = read_file(fmt::format("/proc/{}/stat", pid)).value_or("");
  std::istringstream fields(text.substr(std::min(text.size(), text.rfind(')') + 1)));
  std::string skipped;
  for (int i = 3; i < 14; ++i)
    fields >> skipped;
  double user = 0, kernel = 0;
  fields >> user >> kernel;
  return (user + kernel) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

/// A browser and a Prometheus that read the dashboard until `stop`.
void look(const fs::path& output, const std::atomic<bool>& stop, Outcome& outcome) {
  Page page;
  while (!stop && (page = page_in(output)).port == 0)
    std::this_thread::sleep_for(20ms);
  if (stop)
    return;
  std::thread browser([&] {
    while (!stop && outcome.taken == 0)  // The run may not exist yet.
      outcome.taken = ask(page, "/api/runs/run/stream", stop);
  });
  for (int tick = 0; !stop; ++tick) {
    if (tick % 20 == 0 && ask(page, "/metrics", stop) > 0)
      ++outcome.scrapes;
    std::this_thread::sleep_for(100ms);
  }
  browser.join();
}

/// Pins this thread and its child processes to a core.
void keep_to(int core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  ::sched_setaffinity(0, sizeof cores, &cores);
}

Outcome run(bool with, int updates, int core) {
  keep_to(core);
  const auto folder = TemporaryFolder::create("temper-bench-").value();
  const fs::path output = folder.path() / "output";
  std::vector<std::string> words{TEMPER_PROGRAM,
                                 "run",
                                 TEMPER_CONFIGS "/quickstart.yaml",
                                 "--plain",
                                 fmt::format("--set=steps={}", updates),
                                 "--set=placement.mode=colocated",
                                 "--set=placement.cards=1",
                                 "--set=run_dir=" + (folder.path() / "run").string()};
  if (with)
    words.insert(words.end(), {"--dashboard=127.0.0.1:0", "--set=tracking.aliases=[trl,verl]"});
  else {
    words.insert(words.end(),
                 {"--set=samples.share=0",
                  "--set=tracking.tensorboard=false",
                  "--set=alarms.enabled=false"});
  }
  std::vector<char*> arguments;
  for (std::string& word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t to_file;
  ::posix_spawn_file_actions_init(&to_file);
  ::posix_spawn_file_actions_addopen(&to_file, 1, output.c_str(), O_WRONLY | O_CREAT, 0600);
  ::posix_spawn_file_actions_adddup2(&to_file, 1, 2);
  pid_t pid = 0;
  if (::posix_spawn(&pid, words[0].c_str(), &to_file, nullptr, arguments.data(), environ) != 0)
    std::exit(1);
  Outcome outcome;
  std::atomic<bool> stop = false;
  std::thread looking([&] {
    if (with)
      look(output, stop, outcome);
  });
  siginfo_t ended{};
  ::waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOWAIT);
  outcome.head_s = own_seconds(pid);
  int status = 0;
  rusage used{};
  ::wait4(pid, &status, 0, &used);
  stop = true;
  looking.join();
  const auto summary = read_file(folder.path() / "run/summary.json");
  if (status != 0 || !summary) {
    fmt::print(stderr, "the run failed: {}\n", read_file(output).value_or(""));
    std::exit(1);
  }
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  outcome.cpu_s = seconds(used.ru_utime) + seconds(used.ru_stime);
  outcome.trained_per_s = parse_json_or_throw(*summary).at("tokens").at("trained_per_s");
  return outcome;
}

/// Results of a round, by core.
double ratio(const std::array<Outcome, 2>& without,
             const std::array<Outcome, 2>& with,
             double Outcome::*figure) {
  return std::sqrt(with[0].*figure / without[1].*figure * with[1].*figure / without[0].*figure);
}

/// The mean, with two standard errors.
void print_ratio(const char* what, const std::vector<double>& ratios) {
  const auto n = static_cast<double>(ratios.size());
  double sum = 0, squares = 0;
  for (const double r : ratios)
    sum += std::log(r);
  for (const double r : ratios)
    squares += std::pow(std::log(r) - sum / n, 2);
  const double error = n > 1 ? 2 * std::sqrt(squares / (n - 1) / n) : 0;
  fmt::print("{}, with over without: {:.4f} +- {:.4f} ({} rounds, {:.3f} to {:.3f})\n",
             what,
             std::exp(sum / n),
             error,
             ratios.size(),
             *std::ranges::min_element(ratios),
             *std::ranges::max_element(ratios));
}

}  // namespace
}  // namespace temper

int main(int argc, char** argv) {
  using namespace temper;
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 6;
  const int updates = argc > 2 ? std::atoi(argv[2]) : 150;
  const std::vector<std::uint32_t> cores = actors::usable_cores();
  if (cores.size() < 2) {
    fmt::print(stderr, "page_bench: needs at least two cores, one for each of two runs\n");
    return 1;
  }
  std::vector<double> speed, cpu, head;
  fmt::print("{:<6} {:>18} {:>18} {:>12} {:>12} {:>12} {:>8}\n",
             "core",
             "tokens/s without",
             "tokens/s with",
             "CPU without",
             "CPU with",
             "stream KiB",
             "scrapes");
  for (int round = 0; round < rounds; ++round) {
    std::array<Outcome, 2> without, with;  // By core.
    for (const std::size_t core : {0U, 1U}) {
      std::thread other(
          [&] { without[1 - core] = run(false, updates, static_cast<int>(cores[1 - core])); });
      std::thread shown([&] { with[core] = run(true, updates, static_cast<int>(cores[core])); });
      other.join();
      shown.join();
    }
    for (const std::size_t core : {0U, 1U}) {
      fmt::print("{:<6} {:>18.1f} {:>18.1f} {:>10.2f} s {:>10.2f} s {:>12} {:>8}\n",
                 cores[core],
                 without[core].trained_per_s,
                 with[core].trained_per_s,
                 without[core].cpu_s,
                 with[core].cpu_s,
                 with[core].taken >> 10,
                 with[core].scrapes);
    }
    std::fflush(stdout);
    speed.push_back(ratio(without, with, &Outcome::trained_per_s));
    cpu.push_back(ratio(without, with, &Outcome::cpu_s));
    for (const std::size_t core : {0U, 1U})
      head.push_back((with[core].head_s - without[core].head_s) / without[core].cpu_s);
  }
  print_ratio("trained tokens/s", speed);
  print_ratio("processor time", cpu);
  double sum = 0;
  for (const double share : head)
    sum += share;
  fmt::print(
      "additional processor time of the orchestrator: {:.2f} % of the run's ({:.2f} to {:.2f})\n",
      100 * sum / static_cast<double>(head.size()),
      100 * *std::ranges::min_element(head),
      100 * *std::ranges::max_element(head));
}
