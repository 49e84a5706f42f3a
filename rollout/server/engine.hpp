// The rollout engine for an inference server: each response is one request, or several in sequence
// if it was interrupted. All tokens of a request have one version, because no request is in flight
// while weights change.
//
// A token counts only if its version is certain: the server reports it for the token (version
// ranges), or after the token arrived. Tokens that are not certain, malformed, or lost with a
// connection are dropped and counted; the response continues from the tokens before them.
//
// States of the server, as the engine sees it:
//   1 working   its label is that of version(); requests are sent
//   2 suspect   a request failed: its label is requested before anything else counts
//   3 away      it does not answer: probed until `engine.patience` has passed
//   4 replaced  it answers with other weights (it was restarted): version() is committed again
#pragma once

#include "actors/server/version_commit.hpp"
#include "rollout/engine.hpp"
#include "rollout/server/in_flight_window.hpp"

#include <memory>

namespace temper::rollout {

struct ServerEngineOptions {
  SamplingConfig sampling;
  std::size_t concurrency = 128;
  std::size_t first_window = 64;  ///< Requests in flight before the server's load is known.
  std::uint64_t seed = 0;         ///< For request ids.
  /// How long answers are awaited after the server was told to pause.
  Duration drain = std::chrono::seconds(10);
  Duration request_deadline = std::chrono::hours(1);
  /// Consecutive failures after which a response is abandoned.
  int attempts = 20;
  /// For one in this many responses, log-probs are compared with those that the server scores.
  std::size_t compare_every = 64;
};

/// Work of a server that was discarded.
struct ServerWaste {
  std::size_t sampled_again = 0;     ///< Attempts at a response that kept no token.
  std::size_t uncertain_tokens = 0;  ///< Tokens dropped because their version was not certain.
  std::size_t outages = 0;           ///< Times that the server was away or replaced.
};

class ServerEngine : public Engine {
 public:
  virtual const ServerWaste& waste() const = 0;
  virtual std::size_t in_flight() const = 0;
};

/// Waits until the server works, at most `patience`, and aborts requests that others left on it.
/// `first`: the base weights, with which a server that Temper starts begins; otherwise they are not
/// used. Errors: the server does not start or lacks a route.
Result<std::unique_ptr<ServerEngine>> make_server_engine(std::unique_ptr<actors::Server> server,
                                                         const ServerEngineOptions& options,
                                                         std::span<const std::byte> first);

}  // namespace temper::rollout
