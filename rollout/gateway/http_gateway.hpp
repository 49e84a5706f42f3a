// An HTTP/1.1 server on this machine's loopback interface, at a free port. Its own thread moves the
// bytes; all other functions are for one other thread. Each request is answered once, by its
// ticket.
//
// Every user of the machine can connect, so the name of a session is the only credential. A request
// is refused by its header, before its body is read, unless it names an admitted session. Bounds:
// GatewayLimits. If too many clients have not named a session, the oldest is closed, so that they
// cannot lock out an agent.
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
  std::uint64_t body = std::uint64_t{64} << 20;  ///< Bytes of a request body.
  std::size_t unauthenticated = 400;             ///< Clients that have not named a session.
  Duration header = std::chrono::seconds(10);    ///< For the header of a client's first request.
  Duration body_time = std::chrono::minutes(1);  ///< For reading a body, and for sending an answer.
  Duration idle = std::chrono::minutes(10);      ///< Between requests of a client with a session.
};

class HttpGateway {
 public:
  /// Error: no port is available.
  static Result<std::unique_ptr<HttpGateway>> listen(const GatewayLimits& limits = {});
  ~HttpGateway();
  HttpGateway(const HttpGateway&) = delete;
  HttpGateway& operator=(const HttpGateway&) = delete;

  /// http://127.0.0.1:PORT
  const std::string& address() const { return address_; }
  /// Accepts, or no longer accepts, requests of this session.
  void admit(const std::string& session);
  void dismiss(const std::string& session);
  /// The requests that have arrived; waits up to `patience` while there are none.
  std::vector<GatewayCall> take(Duration patience);
  /// Sends a JSON body. The client may be gone; this is not reported.
  void answer(std::uint64_t ticket, int status, std::string body);

 private:
  class Io;
  HttpGateway(std::unique_ptr<Io> io, std::string address);

  std::unique_ptr<Io> io_;
  const std::string address_;
};

}  // namespace temper::rollout
