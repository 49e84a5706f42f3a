#include "cli/serve/page_token.hpp"

#include "core/files.hpp"
#include "core/secret.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace temper::cli {
namespace {

constexpr std::size_t kShortest = 16;
constexpr std::size_t kLongest = 256;

/// Reads the token. Error NotFound: the file does not exist.
Result<std::string> read_token(const std::filesystem::path& file) {
  TEMPER_TRY(FileReader reader, FileReader::open(file));
  struct stat info {};
  if (::fstat(reader.descriptor(), &info) != 0)
    return io_error("cannot inspect " + file.string(), errno);
  if (info.st_uid != ::geteuid() || (info.st_mode & 077) != 0) {
    return invalid_input(
        fmt::format("{}: other users can read this token; expected your file with mode 0600: chmod "
                    "600 it, or delete it to get a new token",
                    file.string()));
  }
  std::string text;
  TEMPER_TRY(std::size_t more, reader.read(text, kLongest + 2));
  static_cast<void>(more);
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r'))
    text.pop_back();
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~";
  if (text.size() < kShortest || text.size() > kLongest ||
      text.find_first_not_of(kPlain) != std::string::npos) {
    return invalid_input(fmt::format(
        "{}: expected a token of {} to {} letters, digits, '-', '_', '.' or '~'; delete "
        "the file to get a new token",
        file.string(),
        kShortest,
        kLongest));
  }
  return text;
}

}  // namespace

Result<std::string> token_in(const std::filesystem::path& file) {
  auto found = read_token(file);
  if (found || found.error().code != ErrorCode::NotFound)
    return found;
  std::string token = make_secret();
  const FileDescriptor fd(
      ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd.is_open() && errno == EEXIST)
    return read_token(file);  // another program created it meanwhile
  const std::string line = token + "\n";
  if (!fd.is_open() ||
      ::write(fd.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    return io_error("cannot write the token to " + file.string(), errno);
  return token;
}

}  // namespace temper::cli
