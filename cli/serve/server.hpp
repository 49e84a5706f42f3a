// The web server: HTTP/1.1 and a stream of frames per client, in its own thread. It only reads run
// folders, so that no client can slow down a run.
//
// Limits: kMostClients connections; 8 KiB of headers, no body; ServerOptions::patience for a
// request, six times that for an answer and for each frame. At most kMostUnproven connections may
// lack the token; one more closes the oldest of them, so that they cannot lock out authenticated
// clients. A slow client gets the latest frame when it is ready and skips those in between. Frames
// are compressed once for all clients that accept gzip.
#pragma once

#include "core/result.hpp"

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace temper::cli {

struct ServerOptions {
  std::vector<std::filesystem::path> folders;  ///< Run folders, or folders of runs.
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;  ///< 0: any free port.
  std::string token;       ///< Empty: a new one is generated.
  std::chrono::milliseconds patience{10000};
};

/// Parses "8080", "0.0.0.0:8080", "[::]:8080" or "". Error: any other text.
Status parse_address(const std::string& text, ServerOptions& to);

class Server {
 public:
  static constexpr std::size_t kMostClients = 400;
  static constexpr std::size_t kMostUnproven = 100;

  /// Starts to listen and answer. Errors: the address is invalid or not available.
  static Result<std::unique_ptr<Server>> start(ServerOptions options);
  /// Stops the thread and closes all connections. A thread that hangs in a file system is abandoned
  /// after a few seconds, so that the program can always end.
  ~Server();

  /// "http://127.0.0.1:8080/?token=..."
  const std::string& url() const { return url_; }

 private:
  struct Loop;
  Server(std::unique_ptr<Loop> loop, std::string url);
  std::unique_ptr<Loop> loop_;
  const std::string url_;
};

}  // namespace temper::cli
