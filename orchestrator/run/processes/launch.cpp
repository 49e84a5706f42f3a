#include "orchestrator/run/processes/launch.hpp"

#include <fmt/format.h>
#include <sys/random.h>

#include <array>

namespace temper::orchestrator {

std::string random_secret() {
  std::array<std::uint64_t, 2> words{};
  TEMPER_CHECK(getrandom(words.data(), sizeof words, 0) == sizeof words, "the system has entropy");
  return fmt::format("{:016x}{:016x}", words[0], words[1]);
}

std::string socket_address(const TransportSection& t) {
  return t.kind == TransportKind::Ipc ? "ipc" : fmt::format("tcp://{}:{}", t.bind, t.port);
}

std::string_view last_line(std::string_view text) {
  while (text.ends_with('\n'))
    text.remove_suffix(1);
  const auto begin = text.rfind('\n');
  return begin == std::string_view::npos ? text : text.substr(begin + 1);
}

}  // namespace temper::orchestrator
