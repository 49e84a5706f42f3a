// A connection to a Redis server, with or without TLS, for commands that are answered with
// integers. It connects when it is used, and again after the server was away.
#pragma once

#include "core/clock.hpp"
#include "core/result.hpp"
#include "orchestrator/run/tls_client.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

struct redisContext;
struct redisReply;

namespace temper::orchestrator {

struct RedisAddress {
  std::string host;
  std::uint16_t port = 0;
  std::string password;  ///< Empty: the server asks for none.
  bool tls = false;
  std::string ca_certificates{};  ///< With TLS: trusted besides those of the system, in PEM.

  /// As in the configuration, with "rediss://" for TLS; without the password.
  std::string text() const;
};

using RedisCommand = std::vector<std::string>;

/// Requires: SIGPIPE is ignored.
class RedisConnection {
 public:
  /// `clock` outlives this.
  RedisConnection(RedisAddress address, const Clock& clock);
  ~RedisConnection();
  RedisConnection(const RedisConnection&) = delete;
  RedisConnection& operator=(const RedisConnection&) = delete;

  /// Sends the commands together and returns their integer answers; 0 for one of another type. May
  /// send them twice. Takes 4 s at most if the server does not answer, and no time within 2 s after
  /// that. A connection that is refused or closed is tried again by the next call.
  /// Errors: Unavailable, the server does not answer; InvalidInput, it does not admit us or refuses
  /// a command (the context has its words).
  Result<std::vector<std::int64_t>> ask(std::span<const RedisCommand> commands);

  const RedisAddress& address() const { return address_; }

 private:
  struct Free {
    void operator()(redisContext* context) const;
    void operator()(redisReply* reply) const;
  };
  using Reply = std::unique_ptr<redisReply, Free>;

  Status connect();
  Result<std::vector<std::int64_t>> exchange(std::span<const RedisCommand> commands);
  void append(const RedisCommand& command);
  /// Sends what was appended. Error: the connection is lost.
  Result<Reply> next_reply();
  Result<Reply> next_reply_over_tls();
  Error refused(ErrorCode code, std::string_view why);
  /// Requires: errno is that of the failed call, and was 0 before it.
  Error lost(std::string_view why);

  const RedisAddress address_;
  const Clock& clock_;
  std::unique_ptr<redisContext, Free> context_;  ///< Null: not connected.
  std::optional<TlsClient> tls_;                 ///< nullopt: without TLS.
  std::string unsent_;                           ///< With TLS, which hiredis does not know.
  Time not_before_{};                            ///< When to try again.
};

}  // namespace temper::orchestrator
