#include "actors/transport/credentials.hpp"

#include "core/file_descriptor.hpp"
#include "core/files.hpp"
#include "core/yaml.hpp"
#include "core/yaml_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

#include <array>
#include <cerrno>
#include <cstdint>

namespace temper::actors {
namespace {

constexpr std::size_t kTextKey = 41;  ///< Including the terminating NUL.

}  // namespace

KeyPair KeyPair::create() {
  std::array<char, kTextKey> open{};
  std::array<char, kTextKey> secret{};
  TEMPER_CHECK(::zmq_curve_keypair(open.data(), secret.data()) == 0,
               "ZeroMQ was built without CURVE");
  return {open.data(), secret.data()};
}

bool is_key(const std::string& text) {
  std::array<std::uint8_t, 32> raw{};
  return text.size() == kTextKey - 1 && text.find('\0') == std::string::npos &&
         ::zmq_z85_decode(raw.data(), text.c_str()) != nullptr;
}

Status write_credentials(const std::filesystem::path& path, const Credentials& credentials) {
  const FileDescriptor fd(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd.is_open())
    return io_error("cannot create " + path.string(), errno);
  const std::string text = to_yaml(credentials);
  if (::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return io_error("cannot write " + path.string(), errno);
  return {};
}

Result<Credentials> read_credentials(const std::filesystem::path& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0)
    return io_error("cannot read " + path.string(), errno);
  if (!S_ISREG(info.st_mode) || info.st_uid != ::geteuid() || (info.st_mode & 077) != 0) {
    return invalid_input(fmt::format(
        "{} holds secrets: it must belong to you and have mode 0600 (chmod 600)", path.string()));
  }
  return read_own_yaml_file<Credentials>(path);
}

Status write_address(const std::filesystem::path& path, const RunAddress& address) {
  return write_file_atomically(path, to_yaml(address));
}

Result<RunAddress> read_address(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored))
    return Error{ErrorCode::NotFound, path.string() + " does not exist"};
  return read_own_yaml_file<RunAddress>(path);
}

}  // namespace temper::actors
