#include "core/manifest.hpp"

#include "core/file_descriptor.hpp"
#include "core/files.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <iterator>
#include <optional>

namespace temper {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTitle = "temper manifest 1\n";
constexpr std::size_t kHashAtOnce = std::size_t{1} << 20;
constexpr std::size_t kHashDigits = 32;

Result<FileSum> sum_file(const fs::path& folder, const std::string& name) {
  TEMPER_TRY(FileReader reader, FileReader::open(folder / name));
  Hasher128 hasher;
  FileSum sum{name, 0, {}};
  std::string piece;
  for (;;) {
    piece.clear();
    TEMPER_TRY(const std::size_t n, reader.read(piece, kHashAtOnce));
    if (n == 0)
      break;
    hasher.add(piece);
    sum.bytes += static_cast<std::int64_t>(n);
  }
  sum.hash = hasher.digest();
  return sum;
}

Status sync_file(const fs::path& path) {
  TEMPER_TRY(const FileDescriptor fd, open_to_read(path));
  if (::fsync(fd.get()) != 0)
    return io_error("cannot sync " + path.string(), errno);
  return {};
}

template <class T>
std::optional<T> number(std::string_view text, int base = 10) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return value;
}

std::optional<Hash128> hash_from(std::string_view text) {
  if (text.size() != kHashDigits)
    return std::nullopt;
  const auto high = number<std::uint64_t>(text.substr(0, 16), 16);
  const auto low = number<std::uint64_t>(text.substr(16), 16);
  if (!high || !low)
    return std::nullopt;
  return Hash128{*high, *low};
}

/// Removes and returns the text before `end`; removes `end` as well.
std::string_view take(std::string_view& rest, char end) {
  const std::size_t at = std::min(rest.find(end), rest.size());
  const std::string_view front = rest.substr(0, at);
  rest.remove_prefix(std::min(at + 1, rest.size()));
  return front;
}

/// Returns false if this is not a manifest line.
bool read_line(std::string_view line, Manifest& to) {
  const std::string_view kind = take(line, ' ');
  const std::string_view first = take(line, ' ');
  if (kind == "fact") {
    const auto value = number<std::uint64_t>(line);
    if (value)
      to.facts.emplace(first, *value);
    return value.has_value();
  }
  const auto bytes = number<std::int64_t>(first);
  const auto hash = hash_from(take(line, ' '));
  if (kind != "file" || !bytes || !hash)
    return false;
  to.files.push_back({std::string(line), *bytes, *hash});
  return true;
}

}  // namespace

const FileSum* Manifest::find(std::string_view name) const {
  const auto it = std::ranges::find(files, name, &FileSum::name);
  return it == files.end() ? nullptr : &*it;
}

Result<std::vector<FileSum>> sum_files(const fs::path& folder,
                                       const std::vector<std::string>& names) {
  std::vector<FileSum> sums;
  for (const std::string& name : names) {
    TEMPER_TRY_STATUS(sync_file(folder / name));
    TEMPER_TRY(FileSum sum, sum_file(folder, name));
    sums.push_back(std::move(sum));
  }
  std::ranges::sort(sums, {}, &FileSum::name);
  return sums;
}

Result<std::vector<FileSum>> sum_folder(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    if (it->is_directory(error))
      sync_folder(it->path());  // the names in it
    if (it->is_regular_file(error))
      names.push_back(it->path().lexically_relative(folder).string());
  }
  if (error)
    return io_error("cannot list " + folder.string(), error.value());
  return sum_files(folder, names);
}

std::string to_text(const Manifest& manifest) {
  std::string text(kTitle);
  for (const auto& [name, value] : manifest.facts)
    fmt::format_to(std::back_inserter(text), "fact {} {}\n", name, value);
  for (const FileSum& f : manifest.files)
    fmt::format_to(std::back_inserter(text), "file {} {} {}\n", f.bytes, to_text(f.hash), f.name);
  return text + fmt::format("end {}\n", to_text(hash128(text)));
}

Result<Manifest> parse_manifest(std::string_view text) {
  Manifest manifest;
  std::string_view rest = text;
  if (!rest.starts_with(kTitle))
    return corrupt("is not a manifest of version 1");
  rest.remove_prefix(kTitle.size());
  while (!rest.empty() && !rest.starts_with("end ")) {
    if (!read_line(take(rest, '\n'), manifest))
      return corrupt("is damaged or truncated");
  }
  if (to_text(manifest) != text)
    return corrupt("is damaged or truncated: it does not match its own hash");
  return manifest;
}

Status write_manifest(const fs::path& path, const Manifest& manifest) {
  return write_file_atomically(path, to_text(manifest));
}

Result<Manifest> read_manifest(const fs::path& path) {
  TEMPER_TRY(const std::string text, read_file(path));
  auto manifest = parse_manifest(text);
  if (!manifest)
    return corrupt(fmt::format("{} {}", path.string(), manifest.error().context));
  return manifest;
}

Status check_file(const fs::path& folder, const FileSum& file) {
  const std::string path = (folder / file.name).string();
  std::error_code ignored;
  if (const auto status = fs::status(path, ignored);
      fs::exists(status) && !fs::is_regular_file(status))
    return corrupt(path + " is damaged: not a regular file");
  const auto damaged = [&](std::int64_t bytes) {
    return corrupt(
        fmt::format("{} is damaged: expected {} bytes, found {}", path, file.bytes, bytes));
  };
  // Compare the size first: a sparse file takes no disk space, but can take hours to read.
  if (const auto opened = open_to_read(folder / file.name)) {
    struct stat status {};
    if (::fstat(opened->get(), &status) == 0 && status.st_size != file.bytes)
      return damaged(status.st_size);
  }
  const auto found = sum_file(folder, file.name);
  if (!found && found.error().code == ErrorCode::NotFound)
    return corrupt(path + " is missing");
  if (!found)
    return found.error();
  if (found->bytes != file.bytes)
    return damaged(found->bytes);
  if (found->hash != file.hash)
    return corrupt(path + " is damaged: its content does not match the hash in its manifest");
  return {};
}

Status check_files(const fs::path& folder, const Manifest& manifest) {
  for (const FileSum& file : manifest.files)
    TEMPER_TRY_STATUS(check_file(folder, file));
  return {};
}

Result<Manifest> check_folder(const fs::path& folder) {
  TEMPER_TRY(Manifest manifest, read_manifest(folder / kFolderManifest));
  TEMPER_TRY_STATUS(check_files(folder, manifest));
  return manifest;
}

}  // namespace temper
