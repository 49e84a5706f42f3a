// A gzip file (RFC 1952) written incrementally at level 1: fast rather than small.
#pragma once

#include "core/files.hpp"

#include <memory>

namespace temper {

class GzipFile {
 public:
  /// Creates an empty file and truncates an existing one. Without close() the stream is incomplete.
  /// Errors: as AppendFile::open(); OutOfMemory if zlib cannot allocate its state.
  static Result<GzipFile> create(const std::filesystem::path& path);
  GzipFile(GzipFile&&) noexcept;
  GzipFile& operator=(GzipFile&&) noexcept;
  ~GzipFile();

  /// Compresses `data`. zlib may keep some of it until the next call. Error: Io; what was not
  /// written is lost, so the stream is incomplete.
  Status append(std::string_view data);
  /// See temper::put_in_place() in core/replace.hpp. After an error the file is closed.
  Status put_in_place(const std::filesystem::path& from, const std::filesystem::path& to);
  /// Ends the stream, without syncing the file. Nothing can be appended afterwards. Error: Io.
  Status close();

 private:
  struct Stream;
  GzipFile(AppendFile file, std::unique_ptr<Stream> stream);
  Status deflate(std::string_view data, int flush);

  AppendFile file_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace temper
