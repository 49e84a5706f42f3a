// A connection to a Redis server for commands that are answered with integers. It connects when it
// is used, and again after the server was away.
#pragma once

#include "core/clock.hpp"
#include "core/result.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

struct redisContext;

namespace temper::orchestrator {

struct RedisAddress {
  std::string host;
  std::uint16_t port = 0;
  std::string password;  ///< Empty: the server asks for none.

  /// Without the password.
  std::string text() const;
};

using RedisCommand = std::vector<std::string>;

/// Requires: SIGPIPE is ignored.
class RedisConnection {
 public:
  explicit RedisConnection(RedisAddress address);
  ~RedisConnection();
  RedisConnection(const RedisConnection&) = delete;
  RedisConnection& operator=(const RedisConnection&) = delete;

  /// Sends the commands together and returns their integer answers; 0 for one of another type. May
  /// send them twice. Takes 3 s at most if the server does not answer, and no time within 2 s after
  /// that. A connection that is refused at once is tried again by the next call.
  /// Errors: Unavailable, the server does not answer; InvalidInput, it does not admit us or refuses
  /// a command (the context has its words).
  Result<std::vector<std::int64_t>> ask(std::span<const RedisCommand> commands);

  const RedisAddress& address() const { return address_; }

 private:
  struct Close {
    void operator()(redisContext* context) const;
  };

  Status connect();
  Result<std::vector<std::int64_t>> exchange(std::span<const RedisCommand> commands);
  Error lost();

  const RedisAddress address_;
  RealClock clock_;
  std::unique_ptr<redisContext, Close> context_;  ///< Null: not connected.
  Time asked_at_{};
  Time not_before_{};  ///< When to try again.
};

}  // namespace temper::orchestrator
