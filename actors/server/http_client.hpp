// An HTTP/1.1 client of one server, for thousands of requests in flight. A separate thread does the
// I/O; send(), take() and call() must be called from one other thread. Connections are reused. If a
// reused connection turns out to be closed, the request is sent again once on a new one; nothing
// else is retried.
//
// The server is not trusted: header fields, chunk extensions and trailers are limited to 64 KiB,
// the body to the limit of the request, and endless output of one connection does not delay the
// deadlines of others.
#pragma once

#include "actors/server/url.hpp"
#include "core/units.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace temper::actors {

struct HttpRequest {
  std::string method = "GET";
  std::string target;  ///< Path and query.
  std::string body;    ///< JSON; empty if there is no body.
  Duration deadline = std::chrono::seconds(10);
  std::uint64_t largest_answer = std::uint64_t{8} << 20;  ///< Limit for the body of the response,
                                                          ///< in bytes.
};

struct HttpAnswer {
  int status = 0;  ///< 0 if there is no response; `failure` has the reason.
  std::string body;
  std::string failure;
  bool good() const { return status >= 200 && status < 300; }
};

class HttpClient {
 public:
  using Ticket = std::uint64_t;
  struct Arrived {
    Ticket ticket = 0;
    HttpAnswer answer;
  };

  /// Uses at most `connections` connections; further requests wait. `key` is sent as a bearer token
  /// unless it is empty.
  HttpClient(Url url, std::size_t connections, std::string key = {});
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  /// Sends a request. take() returns its answer or failure exactly once.
  Ticket send(HttpRequest request);
  /// The answers that have arrived; waits up to `patience` if there are none.
  std::vector<Arrived> take(Duration patience);
  /// Sends a request and waits for its answer, which take() does not return.
  HttpAnswer call(HttpRequest request);
  /// Closes every connection with an outstanding send(); their answers will not arrive.
  void drop_all();

 private:
  class Io;
  std::unique_ptr<Io> io_;
};

}  // namespace temper::actors
