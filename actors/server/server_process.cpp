#include "actors/server/server_process.hpp"

#include "actors/server/internal/replace_all.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

namespace temper::actors {
namespace {

namespace fs = std::filesystem;

std::string quoted(const std::string& word) {
  std::string text = word;
  replace_all(text, "'", R"('\'')");
  return "'" + text + "'";
}

/// Our environment without the variables of our own connection.
std::vector<std::string> variables_to_pass() {
  std::vector<std::string> names;
  for (char** entry = ::environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (!text.starts_with("TEMPER_CREDENTIALS"))
      names.emplace_back(text.substr(0, text.find('=')));
  }
  return names;
}

}  // namespace

Status ServerProcess::start(const fs::path& model, const Url& place) {
  process_.reset();
  std::string command = command_;
  replace_all(command, "{model}", quoted(model.string()));
  replace_all(command, "{host}", place.host);
  replace_all(command, "{port}", std::to_string(place.port));
  Sandbox environment;
  environment.environment = variables_to_pass();
  const std::vector<std::string> shell{
      "/bin/sh", "-c", fmt::format("exec >>{} 2>&1\n{}", quoted(log_.string()), command)};
  TEMPER_TRY(GuardedProcess process, GuardedProcess::start(shell, environment));
  process_.emplace(std::move(process));
  return {};
}

std::optional<std::string> ServerProcess::ended() {
  if (!process_ || !process_->is_gone())
    return std::nullopt;
  return process_->how_it_ended().value_or("ended for an unknown reason");
}

Result<std::uint16_t> free_port() {
  const FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (socket.get() < 0 ||
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
    return io_error("cannot find a free port", errno);
  return ntohs(address.sin_port);
}

fs::path server_log(const std::string& name) {
  std::error_code no_file;
  const fs::path own = fs::read_symlink("/proc/self/fd/2", no_file);
  if (no_file || !fs::is_regular_file(own, no_file) || no_file)
    return fs::current_path() / (name + ".server.log");
  return own.parent_path() / (own.stem().string() + ".server.log");
}

}  // namespace temper::actors
