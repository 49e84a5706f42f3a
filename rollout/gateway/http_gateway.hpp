// An HTTP/1.1 server on this machine's loopback, at a free port. A thread of its own moves the
// bytes; the other functions are for one other thread. A request is answered once, by its ticket.
//
// Every user of the machine can connect, so only the name of a session opens anything. A request is
// refused by its header, before a byte of its body is read, unless it names a session that was
// admitted. Bounds: GatewayLimits. Of the clients that have not named a session, one too many
// closes the oldest, so that they keep no agent out.
#pragma once

#include "core/result.hpp"
#include "core/units.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace temper::rollout {

struct GatewayCall {
  std::uint64_t ticket = 0;
  std::string method;
  std::string target;  ///< Path and query.
  std::string body;
};

struct GatewayLimits {
  std::uint64_t body = std::uint64_t{64} << 20;  ///< Bytes of a request's body.
  std::size_t unauthenticated = 400;                    ///< Clients that have not named a session.
  Duration header = std::chrono::seconds(10);    ///< For the header of a client's first request.
  Duration body_time = std::chrono::minutes(1);  ///< For a body, and for sending an answer.
  Duration idle = std::chrono::minutes(10);      ///< Between requests of one that named a session.
};

class HttpGateway {
 public:
  /// Error: no port.
  static Result<std::unique_ptr<HttpGateway>> listen(const GatewayLimits& limits = {});
  ~HttpGateway();
  HttpGateway(const HttpGateway&) = delete;
  HttpGateway& operator=(const HttpGateway&) = delete;

  /// http://127.0.0.1:PORT
  const std::string& address() const { return address_; }
  /// From here on, or no longer, requests of this session are taken.
  void admit(const std::string& session);
  void dismiss(const std::string& session);
  /// What has arrived; waits up to `patience` while nothing has.
  std::vector<GatewayCall> take(Duration patience);
  /// JSON. Whoever asked may be gone, which nobody is told.
  void answer(std::uint64_t ticket, int status, std::string body);

 private:
  class Io;
  HttpGateway(std::unique_ptr<Io> io, std::string address);

  std::unique_ptr<Io> io_;
  const std::string address_;
};

}  // namespace temper::rollout
