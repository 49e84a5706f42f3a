// A client of one HTTP/1.1 server with thousands of requests in flight. A thread of its own moves
// the bytes; send(), take() and call() are for one other thread. Connections are kept and used
// again. A request on a kept connection that turns out to be closed goes out once more on a new
// one; nothing else is repeated.
//
// A server may be broken or hostile: header fields, chunk extensions and trailers have 64 KiB, a
// body what the request allows, and no server that keeps sending delays the deadlines of the
// others.
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
  std::string body;    ///< JSON; empty: none.
  Duration deadline = std::chrono::seconds(10);
  std::uint64_t largest_answer = std::uint64_t{8} << 20;  ///< Bytes of its body.
};

struct HttpAnswer {
  int status = 0;  ///< 0: there is none, and `failure` says why.
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

  /// At most `connections` at once; further requests wait. `key`: sent as a bearer token; empty:
  /// none.
  HttpClient(Url url, std::size_t connections, std::string key = {});
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  /// Its answer, good or bad, is one of those that take() gives, exactly once.
  Ticket send(HttpRequest request);
  /// What has arrived; waits up to `patience` while nothing has.
  std::vector<Arrived> take(Duration patience);
  /// Sends and waits. Its answer is not among those of take().
  HttpAnswer call(HttpRequest request);
  /// Closes every connection on which an answer to send() is awaited; none of these comes any more.
  void drop_all();

 private:
  class Io;
  std::unique_ptr<Io> io_;
};

}  // namespace temper::actors
