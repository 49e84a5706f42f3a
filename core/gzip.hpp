// A file written in pieces, compressed (gzip, RFC 1952). Fast rather than small: level 1.
#pragma once

#include "core/files.hpp"

#include <memory>

namespace temper {

class GzipFile {
 public:
  /// Starts an empty file, replacing an old one. Without close() it ends in the middle of its
  /// stream.
  static Result<GzipFile> create(const std::filesystem::path& path);
  GzipFile(GzipFile&&) noexcept;
  GzipFile& operator=(GzipFile&&) noexcept;
  ~GzipFile();

  Status append(std::string_view data);
  /// As put_in_place() of core/replace.hpp.
  Status put_in_place(const std::filesystem::path& from, const std::filesystem::path& to);
  /// Ends the stream; nothing can be appended afterwards.
  Status close();

 private:
  struct Stream;
  GzipFile(AppendFile file, std::unique_ptr<Stream> stream);
  Status deflate(std::string_view data, int flush);

  AppendFile file_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace temper
