// What the page and the exporters cost the run that they show: trained tokens/s and processor time
// of the quickstart with them over the same without them, in pairs of runs one after the other, the
// order changing from pair to pair, so that neither what else the machine does nor its heat
// decides.
//
//   page_bench [PAIRS [UPDATES]]      default 6 pairs of runs of 150 updates
//
//   without  no page, no samples, no event files, no alarms
//   with     all of them and names of two other systems; a browser's stream open all the time, and
//            /metrics asked for every two seconds
#include "core/file_descriptor.hpp"
#include "core/files.hpp"
#include "core/json_document.hpp"
#include "core/temporary_folder.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace temper {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

struct Outcome {
  double trained_per_s = 0;
  double cpu_s = 0;  ///< Of all processes of the run.
  std::size_t taken = 0, scrapes = 0;
};

/// The port in "page at http://127.0.0.1:PORT/"; 0: not printed yet.
std::uint16_t port_in(const fs::path& output) {
  const auto text = read_file(output);
  const std::size_t at = text ? text->find("http://127.0.0.1:") : std::string::npos;
  return at == std::string::npos ? std::uint16_t{0}
                                 : static_cast<std::uint16_t>(std::atoi(text->c_str() + at + 17));
}

/// Asks and takes what comes until the server closes or `stop`; the number of bytes.
std::size_t ask(std::uint16_t port, const std::string& what, const std::atomic<bool>& stop) {
  const FileDescriptor fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval patience{0, 200000};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0)
    return 0;
  const std::string request = fmt::format(
      "GET {} HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n",
      what);
  if (::send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0)
    return 0;
  std::array<char, 65536> piece{};
  std::size_t taken = 0;
  while (!stop) {
    const ssize_t n = ::recv(fd.get(), piece.data(), piece.size(), 0);
    if (n == 0 || (n < 0 && errno != EAGAIN))
      break;
    taken += static_cast<std::size_t>(std::max<ssize_t>(n, 0));
  }
  return taken;
}

/// A browser and a Prometheus at the page, until `stop`.
void look(const fs::path& output, const std::atomic<bool>& stop, Outcome& outcome) {
  std::uint16_t port = 0;
  while (!stop && (port = port_in(output)) == 0)
    std::this_thread::sleep_for(20ms);
  if (stop)
    return;
  std::thread browser([&] { outcome.taken = ask(port, "/api/runs/run/stream", stop); });
  for (int tick = 0; !stop; ++tick) {
    if (tick % 20 == 0 && ask(port, "/metrics", stop) > 0)
      ++outcome.scrapes;
    std::this_thread::sleep_for(100ms);
  }
  browser.join();
}

Outcome run(bool with, int updates) {
  const auto folder = TemporaryFolder::create("temper-bench-").value();
  const fs::path output = folder.path() / "output";
  std::vector<std::string> words{TEMPER_PROGRAM,
                                 "run",
                                 TEMPER_CONFIGS "/quickstart.yaml",
                                 "--plain",
                                 fmt::format("--set=steps={}", updates),
                                 "--set=run_dir=" + (folder.path() / "run").string()};
  if (with)
    words.insert(words.end(), {"--dashboard=127.0.0.1:0", "--set=tracking.aliases=[trl,verl]"});
  else
    words.insert(words.end(),
                 {"--set=samples.share=0",
                  "--set=tracking.tensorboard=false",
                  "--set=alarms.enabled=false"});
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

void print_ratio(const char* what, std::vector<double> ratios) {
  std::ranges::sort(ratios);
  const std::size_t n = ratios.size();
  fmt::print("{}, with over without: median {:.3f}, of {} pairs {:.3f} to {:.3f}\n",
             what,
             (ratios[(n - 1) / 2] + ratios[n / 2]) / 2,
             n,
             ratios.front(),
             ratios.back());
}

}  // namespace
}  // namespace temper

int main(int argc, char** argv) {
  using namespace temper;
  const int pairs = argc > 1 ? std::atoi(argv[1]) : 6;
  const int updates = argc > 2 ? std::atoi(argv[2]) : 150;
  std::vector<double> speed, cpu;
  fmt::print("{:<6} {:>18} {:>18} {:>12} {:>12} {:>12} {:>8}\n",
             "pair",
             "tokens/s without",
             "tokens/s with",
             "CPU without",
             "CPU with",
             "stream KiB",
             "scrapes");
  for (int pair = 0; pair < pairs; ++pair) {
    std::array<Outcome, 2> of;
    for (const bool with : {pair % 2 == 0, pair % 2 != 0})
      of[with ? 1 : 0] = run(with, updates);
    fmt::print("{:<6} {:>18.1f} {:>18.1f} {:>10.2f} s {:>10.2f} s {:>12} {:>8}\n",
               pair + 1,
               of[0].trained_per_s,
               of[1].trained_per_s,
               of[0].cpu_s,
               of[1].cpu_s,
               of[1].taken >> 10,
               of[1].scrapes);
    std::fflush(stdout);
    speed.push_back(of[1].trained_per_s / of[0].trained_per_s);
    cpu.push_back(of[1].cpu_s / of[0].cpu_s);
  }
  print_ratio("trained tokens/s", speed);
  print_ratio("processor time", cpu);
}
