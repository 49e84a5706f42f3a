#include "orchestrator/record/log_files.hpp"

#include "core/hash.hpp"
#include "core/version.hpp"
#include "orchestrator/record/log_frames.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kDigit = kLogTitle.size() - 1;  ///< Index of the format digit in the title.
static_assert(kLogTitle[kDigit] == static_cast<char>('0' + kLogFormat));
constexpr std::size_t kChecked = kLogHeader - sizeof(std::uint64_t);

bool is_sealed(std::string_view header) {
  std::uint64_t check = 0;
  std::memcpy(&check, header.data() + kChecked, sizeof check);
  return hash64(header.substr(0, kChecked)) == check;
}

/// Format of frames before they had chains: u32 length | u32 check | payload.
bool is_without_chain(std::string_view file) {
  constexpr std::size_t kOldHeader = 8;
  if (file.size() < kOldHeader)
    return false;
  std::uint32_t length = 0, check = 0;
  std::memcpy(&length, file.data(), sizeof length);
  std::memcpy(&check, file.data() + 4, sizeof check);
  if (length == 0 || file.size() - kOldHeader < length)
    return false;
  return static_cast<std::uint32_t>(hash64(file.substr(kOldHeader, length))) == check;
}

/// Format with only a title before the first frame.
bool is_unpacked(std::string_view file) {
  constexpr std::string_view kUnpacked = "temperL2";
  return file.starts_with(kUnpacked) && parse_header(file.substr(kUnpacked.size()));
}

/// The format, if the header is valid with that format in its title.
char version_of(std::string_view file) {
  const bool ours = file.size() >= kLogHeader && file.starts_with(kLogTitle.substr(0, kDigit));
  return ours && file[kDigit] != kLogTitle[kDigit] && is_sealed(file.substr(0, kLogHeader))
             ? file[kDigit]
             : '\0';
}

}  // namespace

std::string log_header(const LogPosition& begin) {
  std::string header(kLogHeader, '\0');
  std::memcpy(header.data(), kLogTitle.data(), kLogTitle.size());
  std::memcpy(header.data() + 8, &begin.bytes, sizeof begin.bytes);
  std::memcpy(header.data() + 16, &begin.chain, sizeof begin.chain);
  const std::uint64_t check = hash64(std::string_view(header).substr(0, kChecked));
  std::memcpy(header.data() + kChecked, &check, sizeof check);
  return header;
}

fs::path log_file(const fs::path& log, std::size_t n) {
  return n <= 1 ? log : fs::path(fmt::format("{}.{}", log.string(), n));
}

Result<std::size_t> count_log_files(const fs::path& log) {
  std::error_code error;
  std::size_t last = 0;
  const std::string first = log.filename().string(), prefix = first + ".";
  const fs::path folder = log.has_parent_path() ? log.parent_path() : fs::path(".");
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    std::size_t n = 0;
    if (name == first)
      last = std::max<std::size_t>(last, 1);
    if (!name.starts_with(prefix))
      continue;
    const auto [rest, wrong] =
        std::from_chars(name.data() + prefix.size(), name.data() + name.size(), n);
    // Only names that Temper gives: not "events.log.02".
    if (wrong == std::errc() && rest == name.data() + name.size() && n >= 2 &&
        log_file(log, n).filename() == name)
      last = std::max(last, n);
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    return Error{
        ErrorCode::Io,
        fmt::format("cannot list {}, the folder of the log: {}", folder.string(), error.message())};
  }
  return last;
}

std::string other_format(std::string_view file) {
  constexpr const char* kEarlier =
      "was written by an earlier version of Temper, whose records {}; read it with "
      "that version";
  if (is_without_chain(file))
    return fmt::format(fmt::runtime(kEarlier), "had no chain (format 1)");
  if (is_unpacked(file))
    return fmt::format(fmt::runtime(kEarlier), "were not packed (format 2)");
  if (const char version = version_of(file); version != '\0') {
    return fmt::format(
        "has log format {}, {} than format {} of this program (temper {}); {}",
        version,
        version < kLogTitle[kDigit] ? "older" : "newer",
        kLogFormat,
        program_version(),
        version < kLogTitle[kDigit] ? "use the release that wrote it" : "use a newer release");
  }
  return {};
}

}  // namespace temper::orchestrator
