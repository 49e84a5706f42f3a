#include "orchestrator/fsck/mend.hpp"

#include "core/file_descriptor.hpp"
#include "core/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <tuple>
#include <utility>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;

/// Size limit: scan_all bits of this many bytes can be tried in seconds.
constexpr std::size_t kMostBytes = std::size_t{1} << 16;
/// Each bit of a manifest costs its parsing.
constexpr std::size_t kLongestManifest = std::size_t{1} << 13;

/// Flips the one bit in the first `among` bytes that makes `is_right` true. If there is none,
/// changes nothing and returns false.
bool mend(std::string& bytes, std::size_t among, const std::function<bool()>& is_right) {
  for (std::size_t bit = 0; bit < 8 * among; ++bit) {
    char& byte = bytes[bit / 8];
    byte = static_cast<char>(byte ^ (1 << (bit % 8)));
    if (is_right())
      return true;
    byte = static_cast<char>(byte ^ (1 << (bit % 8)));
  }
  return false;
}

/// Repairs the frame at the front of `bytes`, whose predecessor has this chain. Returns its length;
/// 0: the error is not a single bit.
std::size_t mend_frame(std::string& bytes, std::uint64_t chain) {
  const auto length = [&]() -> std::size_t {
    const auto header = parse_header(bytes);
    if (!header || bytes.size() - kFrameHeader < header->length)
      return 0;
    const auto payload = std::string_view(bytes).substr(kFrameHeader, header->length);
    return hash64(payload, chain) == header->chain ? kFrameHeader + header->length : 0;
  };
  const auto header = parse_header(bytes);
  if (header && kFrameHeader + header->length > std::min(bytes.size(), kMostBytes))
    return 0;
  const std::size_t among = header ? kFrameHeader + header->length : kFrameHeader;
  return mend(bytes, std::min(among, bytes.size()), [&] { return length() > 0; }) ? length() : 0;
}

/// Writes the one byte in which `now` differs from `before` to the file, which has `before` at
/// `at`.
Status overwrite(const fs::path& file,
                 std::size_t at,
                 std::string_view before,
                 std::string_view now) {
  const auto differs =
      static_cast<std::size_t>(std::ranges::mismatch(before, now).in1 - before.begin());
  TEMPER_TRY(const FileDescriptor fd, open_to_write(file));
  if (::pwrite(fd.get(), &now[differs], 1, static_cast<off_t>(at + differs)) != 1 ||
      ::fsync(fd.get()) != 0)
    return io_error("cannot write to " + file.string(), errno);
  return {};
}

/// Repairs the file header at the front of `bytes`. Returns its length; 0: the error is not a
/// single bit.
std::size_t mend_header(std::string& bytes, const LogPosition& begin) {
  const std::string right = log_header(begin);
  const auto is_right = [&] { return bytes.starts_with(right); };
  return bytes.size() >= right.size() && mend(bytes, right.size(), is_right) ? right.size() : 0;
}

/// False: the damage is more than a single bit.
Result<bool> mend_once(const fs::path& first,
                       const LogSummary& summary,
                       std::vector<std::string>& said) {
  const fs::path log = log_file(first, summary.end.file);
  const auto at = static_cast<std::size_t>(summary.end.whole_bytes);
  TEMPER_TRY(FileReader reader, FileReader::open(log));
  TEMPER_TRY_STATUS(reader.seek(summary.end.whole_bytes));
  std::string bytes;
  TEMPER_TRY(std::ignore, reader.read(bytes, kMostBytes));
  const std::string before = bytes;
  const std::size_t length =
      at == 0 ? mend_header(bytes, summary.position) : mend_frame(bytes, summary.position.chain);
  if (length == 0)
    return false;
  const fs::path kept = free_name(log.string() + ".damaged");
  TEMPER_TRY_STATUS(write_file_atomically(kept, std::string_view(before).substr(0, length)));
  TEMPER_TRY_STATUS(overwrite(log, at, before, bytes));
  said.push_back(fmt::format(
      "{}: repaired a single-bit error in record {} at byte {}; the damaged record is kept as {}",
      log.filename().string(),
      summary.records,
      at,
      kept.filename().string()));
  return true;
}

/// Keeps the file as it was beside it.
Status replace_file(const fs::path& path,
                    std::string_view before,
                    std::string_view now,
                    std::vector<std::string>& said) {
  const fs::path kept = free_name(path.string() + ".damaged");
  TEMPER_TRY_STATUS(write_file_atomically(kept, before));
  TEMPER_TRY_STATUS(write_file_atomically(path, now));
  said.push_back(fmt::format("{}: repaired a single-bit error; the damaged file is kept as {}",
                             path.string(),
                             kept.filename().string()));
  return {};
}

}  // namespace

Result<LogSummary> mend_log(const fs::path& log, std::vector<std::string>& said) {
  for (;;) {
    TEMPER_TRY(const LogSummary summary,
               scan_event_log(log, [](const Record&, const LogPosition&) { return Status(); }));
    if (!summary.damaged())
      return summary;
    TEMPER_TRY(const bool mended, mend_once(log, summary, said));
    if (!mended)
      return summary;
  }
}

Result<bool> mend_file(const fs::path& folder, const FileSum& sum, std::vector<std::string>& said) {
  const fs::path path = folder / sum.name;
  std::error_code error;
  if (!std::cmp_less_equal(sum.bytes, kMostBytes) ||
      std::cmp_not_equal(fs::file_size(path, error), sum.bytes) || error)
    return false;
  TEMPER_TRY(std::string bytes, read_file(path));
  const std::string before = bytes;
  if (hash128(bytes) == sum.hash ||
      !mend(bytes, bytes.size(), [&] { return hash128(bytes) == sum.hash; }))
    return false;
  TEMPER_TRY_STATUS(replace_file(path, before, bytes, said));
  return true;
}

Result<bool> mend_manifest(const fs::path& manifest, std::vector<std::string>& said) {
  std::error_code error;
  if (!fs::is_regular_file(manifest, error) || fs::file_size(manifest, error) > kLongestManifest)
    return false;
  TEMPER_TRY(std::string bytes, read_file(manifest));
  const std::string before = bytes;
  if (parse_manifest(bytes) ||
      !mend(bytes, bytes.size(), [&] { return parse_manifest(bytes).has_value(); }))
    return false;
  TEMPER_TRY_STATUS(replace_file(manifest, before, bytes, said));
  return true;
}

}  // namespace temper::orchestrator
