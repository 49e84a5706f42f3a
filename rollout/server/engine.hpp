// The rollout engine over an inference server: each response is a request, or several in a row
// where it was interrupted; each request's tokens are of one version, since none is under way while
// weights change.
//
// A token counts only if its version is certain: the server says so for it (its version ranges), or
// said so after it came. What is not certain, or came damaged, or was lost with its connection, is
// dropped; the response goes on from the tokens before it, and is counted.
//
// States of the server, as the engine sees it:
//   1 working   the label it says is that of version(); requests go out
//   2 doubted   a request got no good answer: it is asked for its label before anything else counts
//   3 away      it does not answer: looked for again and again, until `engine.patience` is over
//   4 strange   it answers, with other weights (it was started again): version() is committed anew
#pragma once

#include "actors/server/version_commit.hpp"
#include "rollout/engine.hpp"
#include "rollout/server/in_flight_window.hpp"

#include <memory>

namespace temper::rollout {

struct ServerEngineOptions {
  SamplingConfig sampling;
  std::size_t concurrency = 128;
  std::size_t first_window = 64;  ///< Requests under way before the server's load is known.
  std::uint64_t seed = 0;         ///< Of request ids.
  /// How long answers are awaited once the server was told to pause.
  Duration drain = std::chrono::seconds(10);
  Duration request_deadline = std::chrono::hours(1);
  /// Failed attempts in a row after which a response is given up.
  int attempts = 20;
  /// Every so many responses, the log-probs of one are compared with those that the server scores.
  std::size_t compare_every = 64;
};

/// What was not used of what a server did.
struct ServerWaste {
  std::size_t sampled_again = 0;     ///< Attempts at a response that left nothing.
  std::size_t uncertain_tokens = 0;  ///< Tokens dropped since their version was not certain.
  std::size_t outages = 0;           ///< Times that the server was away or strange.
};

class ServerEngine : public Engine {
 public:
  virtual const ServerWaste& waste() const = 0;
  virtual std::size_t in_flight() const = 0;
};

/// Waits until the server works, for as long as its patience says, and ends what others left on it.
/// `first`: the base weights, which a server that we start begins with; else they are not looked
/// at.
Result<std::unique_ptr<ServerEngine>> make_server_engine(std::unique_ptr<actors::Server> server,
                                                         const ServerEngineOptions& options,
                                                         std::span<const std::byte> first);

}  // namespace temper::rollout
