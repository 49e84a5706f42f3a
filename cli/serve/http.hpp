// HTTP requests and answers as plain data, independent of the network library (server.cpp), so that
// tests need no sockets.
#pragma once

#include "core/deflate.hpp"

#include <map>
#include <string>
#include <string_view>

namespace temper::cli {

struct HttpRequest {
  std::string method = "GET";
  std::string target = "/";                                 ///< Undecoded path and query.
  std::map<std::string, std::string, std::less<>> headers;  ///< Lower-case name -> value.
};

struct HttpAnswer {
  int status = 200;
  std::string type = "application/json";
  std::string body;
  std::map<std::string, std::string, std::less<>> headers;
  /// If not empty, the answer is a stream of the frames of this run. With a Content-Encoding, each
  /// frame is compressed by pack_frame().
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
/// Splits and percent-decodes a target. Invalid escapes are kept literally.
Target parse_target(std::string_view target);
/// Percent-encodes a part of a path or query; parse_target() restores it.
std::string encoded(std::string_view text);

/// Whether an Accept-Encoding header allows gzip.
bool accepts_gzip(std::string_view accept);

/// The header of a compressed stream, before its first frame.
inline constexpr std::string_view kGzipHeader{"\x1f\x8b\x08\0\0\0\0\0\0\xff", 10};
/// Compresses a frame into a self-contained part of a gzip stream that decodes immediately. A frame
/// is compressed once for all clients, and a client may skip frames.
std::string pack_frame(Packer& packer, std::string_view frame);

}  // namespace temper::cli
