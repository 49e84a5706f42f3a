// An HTTP/1.1 server on this machine's loopback, at a free port. A thread of its own moves the
// bytes; take() and answer() are for one other thread. A request is answered once, by its ticket.
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

class HttpGateway {
 public:
  /// Error: no port.
  static Result<std::unique_ptr<HttpGateway>> listen();
  ~HttpGateway();
  HttpGateway(const HttpGateway&) = delete;
  HttpGateway& operator=(const HttpGateway&) = delete;

  /// http://127.0.0.1:PORT
  const std::string& address() const { return address_; }
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
