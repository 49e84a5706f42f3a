#include "study/machine/other_work.hpp"

#include "actors/runtime/process.hpp"
#include "core/files.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>
#include <string>

namespace temper::study {
namespace {

constexpr double kShortest = 1;  // Seconds.

double seconds_of(const rusage& usage) {
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double own_seconds() {
  rusage self{}, children{};
  ::getrusage(RUSAGE_SELF, &self);
  ::getrusage(RUSAGE_CHILDREN, &children);
  return seconds_of(self) + seconds_of(children);
}

}  // namespace

std::optional<CoreAccounts> read_core_accounts(std::string_view proc_stat,
                                               std::span<const std::uint32_t> cores,
                                               double ticks_per_s) {
  CoreAccounts out;
  std::size_t found = 0;
  std::istringstream lines{std::string(proc_stat)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    const bool wanted = std::ranges::any_of(
        cores, [&](std::uint32_t core) { return name == fmt::format("cpu{}", core); });
    // user, nice, system, idle, iowait, irq, softirq, steal; guest time is part of user.
    double ticks[8] = {};
    if (!wanted)
      continue;
    for (double& each : ticks)
      words >> each;
    ++found;
    for (std::size_t i = 0; i < std::size(ticks); ++i) {
      out.all += ticks[i] / ticks_per_s;
      out.busy += i == 3 || i == 4 ? 0 : ticks[i] / ticks_per_s;
    }
  }
  return found == cores.size() && out.all > 0 ? std::optional(out) : std::nullopt;
}

std::optional<CoreAccounts> core_accounts() {
  const auto text = read_file("/proc/stat");
  if (!text)
    return std::nullopt;
  auto out = read_core_accounts(
      *text, actors::usable_cores(), static_cast<double>(::sysconf(_SC_CLK_TCK)));
  if (out)
    out->own = own_seconds();
  return out;
}

double share_of_others(const CoreAccounts& before, const CoreAccounts& after) {
  const double all = after.all - before.all;
  if (all < kShortest)
    return 0;
  const double others = (after.busy - before.busy) - (after.own - before.own);
  return std::clamp(others / all, 0.0, 1.0);
}

Result<double> measure_quietly(const std::function<Status()>& measure,
                               const std::function<void()>& keep,
                               const std::function<std::optional<CoreAccounts>()>& accounts) {
  std::optional<double> quietest;
  for (int i = 0; i < kTries && quietest.value_or(1) > kQuiet; ++i) {
    const auto before = accounts();
    TEMPER_TRY_STATUS(measure());
    const auto after = accounts();
    const double others = before && after ? share_of_others(*before, *after) : 0;
    if (others < quietest.value_or(2)) {
      quietest = others;
      keep();
    }
  }
  return *quietest;
}

}  // namespace temper::study
