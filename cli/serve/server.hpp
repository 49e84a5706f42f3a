// The page's server: HTTP/1.1 and a stream of frames per client, in a thread of its own. It reads
// the folders of runs and never touches the run itself, so that no client can hold a run up.
//
// Bounds: kMostClients connections; 8 KiB of headers, no body; ServerOptions::patience for a
// request, six times that for an answer and for each frame. Of the connections, kMostUnproven may
// be of clients that have not shown the token; one more closes the oldest of them, so that they
// keep out no client that has it. A client that reads slowly gets the latest frame when it is ready
// for one, and none of those between. Frames are packed once for all clients that take gzip.
#pragma once

#include "core/result.hpp"

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace temper::cli {

struct ServerOptions {
  std::vector<std::filesystem::path> folders;  ///< Runs, or folders of runs.
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;  ///< 0: any free one.
  std::string token;       ///< Empty: a fresh one is made.
  std::chrono::milliseconds patience{10000};
};

/// "8080", "0.0.0.0:8080", "[::]:8080", "" -> address and port. Error: it is none of these.
Status parse_address(const std::string& text, ServerOptions& to);

class Server {
 public:
  static constexpr std::size_t kMostClients = 400;
  static constexpr std::size_t kMostUnproven = 100;

  /// Listens, and answers from then on. Errors: the address is not to be had.
  static Result<std::unique_ptr<Server>> start(ServerOptions options);
  /// Ends the thread and closes all connections. A thread that a file system holds is left behind
  /// after a few seconds, so that nothing can keep the program from ending.
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
