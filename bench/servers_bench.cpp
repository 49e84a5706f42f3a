// Measures the cost of the engine in front of an inference server: requests and tokens per second
// of processor time, with 2,000 requests in flight at a server that answers at once, compared with
// a plain asyncio client in Python (aiohttp) that sends and reads the same. The server's own time
// is excluded. Memory: resident after a quarter of the responses, and after all.
//
//   servers_bench [RESPONSES]      per size, default 40000
//
// TEMPER_PYTHON names a Python with aiohttp; without it the comparison is skipped.
#include "core/clock.hpp"
#include "core/json_document.hpp"
#include "rollout/server/engine.hpp"

#include "instant_server.hpp"
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <numeric>

namespace temper::bench {
namespace {

constexpr std::size_t kInFlight = 2'000;
constexpr int kPrompt = 128;

double processor_seconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto of = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return of(used.ru_utime) + of(used.ru_stime);
}

double resident_mib() {
  std::ifstream statm("/proc/self/statm");
  double pages = 0, resident = 0;
  statm >> pages >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE)) / (1 << 20);
}

struct Cost {
  double cpu = 0, wall = 0;
  double tokens = 0;
  double early_mib = 0, late_mib = 0;
};

Result<std::unique_ptr<rollout::ServerEngine>> make_engine(const std::string& address,
                                                           const Clock& clock,
                                                           const Log& log) {
  actors::ServerOptions options;
  options.config.kind = actors::EngineKind::Vllm;
  options.config.data = {address};
  options.config.patience = std::chrono::seconds(10);
  options.name = "rollout-0";
  options.model.synthetic = true;
  options.model.shape.context = Tokens(1 << 20);
  options.model.vocabulary = 1 << 20;
  options.sampling.vocabulary = 1 << 20;
  options.connections = kInFlight + 4;
  rollout::ServerEngineOptions engine;
  engine.concurrency = kInFlight;
  engine.first_window = kInFlight;
  engine.sampling.max_new_tokens = Tokens(4096);
  engine.compare_every = std::size_t{1} << 60;  // The weights of this benchmark cannot be scored.
  TEMPER_TRY(auto server, actors::Server::create(std::move(options), clock, log));
  TEMPER_TRY(auto made, rollout::make_server_engine(std::move(server), engine, {}));
  const std::string weights = "synthetic weights";
  TEMPER_TRY_STATUS(made->stage(PolicyVersion(1), std::as_bytes(std::span(weights))));
  TEMPER_TRY_STATUS(made->commit(PolicyVersion(1)));
  return made;
}

Result<Cost> ours(const std::string& address, std::size_t responses) {
  const RealClock clock;
  const Log log = Log::discard();
  TEMPER_TRY(const auto engine, make_engine(address, clock, log));
  std::vector<std::int32_t> prompt(kPrompt);
  std::iota(prompt.begin(), prompt.end(), 2);
  Cost cost;
  const double cpu = processor_seconds();
  const Time begin = clock.now();
  std::size_t added = 0, done = 0;
  while (done < responses) {
    while (added < responses && engine->load() < kInFlight)
      engine->add({ResponseId(++added), prompt, {}});
    TEMPER_TRY(const auto step, engine->step());
    for (const auto& g : step.finished) {
      if (g.finish != actors::FinishReason::End)
        return Error{ErrorCode::Internal, "a response did not finish normally"};
      cost.tokens += static_cast<double>(g.tokens.size());
    }
    done += step.finished.size();
    if (cost.early_mib == 0 && done >= responses / 4)
      cost.early_mib = resident_mib();
  }
  cost.wall = seconds(clock.now() - begin);
  cost.cpu = processor_seconds() - cpu;
  cost.late_mib = resident_mib();
  if (engine->waste().sampled_again > 0)
    return Error{ErrorCode::Internal, "responses were sampled again"};
  return cost;
}

std::optional<Cost> pythons(const std::string& address, std::size_t responses) {
  const char* const python = std::getenv("TEMPER_PYTHON");
  const std::string command = fmt::format("{} {} {} {} {} {}",
                                          python != nullptr ? python : "python3",
                                          TEMPER_SERVERS_CLIENT,
                                          address,
                                          responses,
                                          kInFlight,
                                          kPrompt);
  FILE* const pipe = ::popen(command.c_str(), "r");
  char line[512] = {};
  const bool read = pipe != nullptr && std::fgets(line, sizeof line, pipe) != nullptr;
  if (pipe == nullptr || ::pclose(pipe) != 0 || !read)
    return std::nullopt;
  const auto said = parse_json(line);
  return Cost{said["cpu"], said["wall"], said["tokens"], 0, said["peak_kib"].get<double>() / 1024};
}

void print(const char* who, const Cost& c, std::size_t responses) {
  const double n = static_cast<double>(responses);
  fmt::print("  {:<8}{:>9.0f} requests/s{:>12.0f} tokens/s per core{:>9.0f} requests/s wall",
             who,
             n / c.cpu,
             c.tokens / c.cpu,
             n / c.wall);
  if (c.early_mib > 0)
    fmt::print("{:>7.1f} MiB after a quarter,", c.early_mib);
  fmt::print("{:>7.1f} MiB\n", c.late_mib);
}

int run(std::size_t responses) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  fmt::print("{} in flight, prompts of {} tokens\n", kInFlight, kPrompt);
  for (const int tokens : {16, 256}) {
    const std::size_t n = tokens > 100 ? responses / 4 : responses;
    const InstantServer server(tokens);
    fmt::print("{} responses of {} tokens\n", n, tokens);
    const auto us = ours(server.address(), n);
    if (!us) {
      fmt::print(stderr, "servers_bench: {}\n", us.error().context);
      return 1;
    }
    print("temper", *us, n);
    const auto them = pythons(server.address(), n);
    if (!them) {
      fmt::print("  comparison skipped: set TEMPER_PYTHON to a Python with aiohttp\n");
      continue;
    }
    print("aiohttp", *them, n);
    fmt::print("  ratio per core: {:.1f}\n", them->cpu / us->cpu);
  }
  return 0;
}

}  // namespace
}  // namespace temper::bench

int main(int argc, char** argv) {
  return temper::bench::run(argc > 1 ? static_cast<std::size_t>(std::atoll(argv[1])) : 40'000);
}
