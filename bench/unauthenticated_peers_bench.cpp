// Measures the cost of unauthenticated peers at the TCP port of a run: updates per second and the
// orchestrator's peak memory, without them and under each attack. The attackers share the machine's
// cores with the run.
//
//   unauthenticated_peers_bench [SECONDS]      per run, default 15
#include "actors/transport/socket.hpp"
#include "core/clock.hpp"
#include "core/files.hpp"
#include "core/temporary_folder.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

namespace temper::actors {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

using Stop = std::atomic<bool>;
/// Returns the number of attempts.
using Attack = std::function<std::uint64_t(const std::string& endpoint, const Stop& stop)>;

FileDescriptor connect_raw(const std::string& endpoint) {
  FileDescriptor fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port =
      htons(static_cast<std::uint16_t>(std::stoi(endpoint.substr(endpoint.rfind(':') + 1))));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  static_cast<void>(
      ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)));
  return fd;
}

std::uint64_t ten_thousand_connections(const std::string& endpoint, const Stop& stop) {
  std::vector<FileDescriptor> held;
  for (std::uint64_t i = 0; i < 10'000 && !stop; ++i)
    held.push_back(connect_raw(endpoint));
  while (!stop)
    std::this_thread::sleep_for(10ms);
  return held.size();
}

std::uint64_t endless_message(const std::string& endpoint, const Stop& stop) {
  std::string greeting = "\xff" + std::string(8, '\0') + "\x7f\x03";
  greeting += '\x01';
  greeting += "CURVE" + std::string(15 + 32, '\0');
  const std::string frame =
      "\x03" + std::string("\x00\x00\x00\x00\x00\x10\x00\x00", 8) + std::string(1 << 20, 'x');
  std::uint64_t sent = 0;
  while (!stop) {
    const FileDescriptor fd = connect_raw(endpoint);
    std::this_thread::sleep_for(1ms);
    static_cast<void>(::send(fd.get(), greeting.data(), greeting.size(), MSG_NOSIGNAL));
    for (int i = 0; i < 100 && !stop; ++i) {
      const ssize_t n = ::send(fd.get(), frame.data(), frame.size(), MSG_NOSIGNAL);
      if (n < 0 && errno != EAGAIN)
        break;
      std::this_thread::sleep_for(1ms);
      ++sent;
    }
  }
  return sent;
}

Attack with(const Credentials& credentials) {
  return [credentials](const std::string& endpoint, const Stop& stop) {
    std::uint64_t sent = 0;
    const std::string hello(300, 'h');
    while (!stop) {
      auto dealer =
          DealerSocket::connect(endpoint, TransportConfig{}, Log::discard(), credentials).value();
      const RealClock clock;
      while (!stop && clock.now() < Time(200ms)) {
        sent += dealer.try_send("\x83\x01\x01\x02\x01\x03\x01", hello).value() ? 1 : 0;
        if (sent % 100 == 0)
          std::this_thread::sleep_for(1ms);
      }
    }
    return sent;
  };
}

struct Outcome {
  double updates_per_second = 0;
  double peak_mb = 0;
  int status = 0;
  std::uint64_t tried = 0;
};

std::string status_line(pid_t pid, std::string_view name) {
  const auto text = read_file(fmt::format("/proc/{}/status", pid));
  if (!text)
    return "";
  const auto at = text->find(name);
  return at == std::string::npos ? "" : text->substr(at + name.size(), 40);
}

/// The address that the run's workers connect to; empty: none yet.
std::string endpoint_of(pid_t run) {
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string pid = entry.path().filename().string();
    if (pid.find_first_not_of("0123456789") != std::string::npos)
      continue;
    const pid_t child = std::atoi(pid.c_str());
    if (std::atoi(status_line(child, "PPid:").c_str()) != run)
      continue;
    const auto words = read_file(entry.path() / "cmdline");
    const auto at = words ? words->find("tcp://") : std::string::npos;
    if (at != std::string::npos)
      return words->substr(at, words->find('\0', at) - at);
  }
  return "";
}

Outcome run_under(const Attack& attack, int seconds, const std::string& security) {
  const auto folder = TemporaryFolder::create("temper-bench-").value();
  const std::string out = (folder.path() / "run").string();
  std::vector<std::string> words{TEMPER_PROGRAM,
                                 "run",
                                 TEMPER_CONFIGS "/quickstart.yaml",
                                 "--plain",
                                 "--set=policy=synthetic",
                                 "--set=steps=1000000",
                                 "--set=transport.kind=tcp",
                                 "--set=transport.security=" + security,
                                 "--set=run_dir=" + out};
  std::vector<char*> arguments;
  for (std::string& word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t quiet;
  ::posix_spawn_file_actions_init(&quiet);
  ::posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_adddup2(&quiet, 1, 2);
  pid_t pid = 0;
  if (::posix_spawn(&pid, words[0].c_str(), &quiet, nullptr, arguments.data(), environ) != 0)
    std::exit(1);
  std::string endpoint;
  while ((endpoint = endpoint_of(pid)).empty())
    std::this_thread::sleep_for(10ms);
  std::this_thread::sleep_for(2s);  // All workers are connected and busy.
  const auto updates = [&] {
    const auto text = read_file(out + "/metrics.jsonl");
    return text ? std::count(text->begin(), text->end(), '\n') : 0;
  };
  Stop stop = false;
  Outcome outcome;
  const auto before = updates();
  std::thread attacker([&] { outcome.tried = attack ? attack(endpoint, stop) : 0; });
  std::this_thread::sleep_for(std::chrono::seconds(seconds));
  outcome.updates_per_second = static_cast<double>(updates() - before) / seconds;
  outcome.peak_mb = std::atof(status_line(pid, "VmHWM:").c_str()) / 1024;
  ::kill(pid, SIGINT);
  stop = true;
  attacker.join();
  ::waitpid(pid, &outcome.status, 0);
  return outcome;
}

}  // namespace
}  // namespace temper::actors

int main(int argc, char** argv) {
  using namespace temper::actors;
  const int seconds = argc > 1 ? std::atoi(argv[1]) : 15;
  const KeyPair foreign = KeyPair::create();
  const std::vector<std::pair<std::string, Attack>> attacks{
      {"nobody", {}},
      {"client without a key, HELLO flood", with({})},
      {"client with a foreign key, HELLO flood", with({"", foreign.open, KeyPair::create()})},
      {"10,000 connections", ten_thousand_connections},
      {"endless message", endless_message},
      {"no attack, again", {}}};
  fmt::print("{:<40} {:>10} {:>10} {:>12} {:>6}\n", "", "updates/s", "peak MB", "attempts", "end");
  for (const auto& [name, attack] : attacks) {
    const Outcome o = run_under(attack, seconds, "curve");
    fmt::print("{:<40} {:>10.1f} {:>10.1f} {:>12} {:>6}\n",
               name,
               o.updates_per_second,
               o.peak_mb,
               o.tried,
               o.status);
  }
}
