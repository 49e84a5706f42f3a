#include "study/machine/cpu_times.hpp"

#include "core/files.hpp"

#include <unistd.h>

#include <filesystem>
#include <sstream>

namespace temper::study {
namespace {

namespace fs = std::filesystem;

/// The parent is the second field after the name, which is in parentheses and may contain anything.
bool is_child(const fs::path& process) {
  const auto text = read_file(process / "stat");
  if (!text)
    return false;
  const auto name_end = text->rfind(')');
  if (name_end == std::string::npos)
    return false;
  std::istringstream rest(text->substr(name_end + 1));
  std::string state;
  long parent = 0;
  return static_cast<bool>(rest >> state >> parent) && parent == ::getpid();
}

/// The first field of schedstat: nanoseconds on a core.
Duration time_of(const fs::path& process) {
  Duration sum{};
  std::error_code gone;
  for (const auto& thread : fs::directory_iterator(process / "task", gone)) {
    const auto text = read_file(thread.path() / "schedstat");
    std::int64_t ns = 0;
    if (text && std::istringstream(*text) >> ns)
      sum += Duration(ns);
  }
  return sum;
}

std::string name_of(const fs::path& process) {
  auto name = read_file(process / "comm");
  if (!name)
    return "";
  while (name->ends_with('\n'))
    name->pop_back();
  return *name;
}

}  // namespace

std::map<std::string, Duration> cpu_times() {
  std::map<std::string, Duration> times;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator("/proc", none)) {
    const std::string pid = entry.path().filename();
    if (pid.find_first_not_of("0123456789") != std::string::npos)
      continue;
    if (pid == std::to_string(::getpid()))
      times["orchestrator"] = time_of(entry.path());
    else if (is_child(entry.path()))
      times[name_of(entry.path())] = time_of(entry.path());
  }
  return times;
}

}  // namespace temper::study
