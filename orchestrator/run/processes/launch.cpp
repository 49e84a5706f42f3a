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

Result<Handout> Handout::create(const TransportSection& transport) {
  remove_abandoned_folders();  // of orchestrators that were killed
  TEMPER_TRY(TemporaryFolder folder, TemporaryFolder::create("temper-keys-"));
  std::optional<actors::KeyPair> key;
  if (transport.kind == TransportKind::Tcp && transport.security == TransportSecurity::Curve)
    key = actors::KeyPair::create();
  return Handout(std::move(folder), random_secret(), std::move(key));
}

Result<std::filesystem::path> Handout::give(const std::string& name, actors::AsioRouter& router) {
  actors::Credentials credentials{.secret = secret_, .orchestrator_key = {}, .own = {}};
  if (key_) {
    credentials.orchestrator_key = key_->open;
    credentials.own = actors::KeyPair::create();
    std::string& open = given_[name];
    if (!open.empty())
      router.keep_out(open);
    open = credentials.own.open;
    router.let_in(open, name);
  }
  const std::filesystem::path path = folder_.path() / name;
  std::error_code none_before;
  std::filesystem::remove(path, none_before);
  TEMPER_TRY_STATUS(write_credentials(path, credentials));
  return path;
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
