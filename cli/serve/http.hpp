// A request and its answer, without the library that carries them (server.cpp), so that a test can
// ask anything.
#pragma once

#include "core/deflate.hpp"

#include <map>
#include <string>
#include <string_view>

namespace temper::cli {

struct HttpRequest {
  std::string method = "GET";
  std::string target = "/";                                 ///< As it came: path and query.
  std::map<std::string, std::string, std::less<>> headers;  ///< By name in lower case.
};

struct HttpAnswer {
  int status = 200;
  std::string type = "application/json";
  std::string body;
  std::map<std::string, std::string, std::less<>> headers;
  /// Not empty: the answer is a stream of the frames of this run. With a Content-Encoding, each
  /// frame is packed by pack_frame().
  std::string stream_of;
};

struct Target {
  std::string path;
  std::map<std::string, std::string, std::less<>> query;
  std::string_view operator[](std::string_view name) const {
    const auto it = query.find(name);
    return it == query.end() ? std::string_view() : std::string_view(it->second);
  }
};
/// Splits and decodes a target. What is no escape stays as it is.
Target parse_target(std::string_view target);
/// A part of a path or of a query that parse_target() reads back as it was.
std::string encoded(std::string_view text);

/// Whether an Accept-Encoding header allows gzip.
bool accepts_gzip(std::string_view accept);

/// What a packed stream begins with, before its first frame.
inline constexpr std::string_view kGzipHeader{"\x1f\x8b\x08\0\0\0\0\0\0\xff", 10};
/// A part of a gzip stream that can be read as soon as it is there. Each begins anew, so that it is
/// packed once for all clients and may follow any other: a client that skips frames loses nothing.
std::string pack_frame(Packer& packer, std::string_view frame);

}  // namespace temper::cli
