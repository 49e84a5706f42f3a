// The tool calls of a simulated response: a pure function of (configuration, seed, response), so
// that calls do not depend on engine, order or machine.
//
// A response of a given length is a turn, the result of a call, a turn, and so on, each as long as
// its distribution says (actors/simulation/lengths.hpp); the length cuts off the last turn, and a
// result so that at least one sampled token follows it. Immutable after construction; thread-safe.
#pragma once

#include "actors/simulation/lengths.hpp"
#include "actors/simulation/tool_config.hpp"
#include "core/ids.hpp"

#include <optional>

namespace temper::actors {

/// Error InvalidInput: a distribution that check_lengths() rejects.
Status check_tools(const ToolConfig& config);

struct ToolCall {
  std::uint64_t index = 0;  ///< Among the calls of its response.
  std::int64_t at = 0;      ///< Tokens of the response when it calls.
  std::int64_t result = 0;  ///< Tokens that the answer adds.
};

class ToolCalls {
 public:
  /// Requires: check_tools(config) succeeds.
  ToolCalls(const ToolConfig& config, std::uint64_t seed);

  struct Left {
    std::optional<ToolCall> next;
    std::int64_t results = 0;  ///< Tokens of the results of this and all later calls.
  };
  /// The calls of a response of `length` tokens that has the first `tokens` of them and no answer
  /// to a call after these.
  Left left(ResponseId response, std::int64_t length, std::int64_t tokens) const;
  /// The call that follows this one.
  std::optional<ToolCall> after(ResponseId response,
                                std::int64_t length,
                                const ToolCall& call) const;
  /// Time that tools take until one does not fail.
  Duration latency(ResponseId response, const ToolCall& call) const;

 private:
  std::optional<ToolCall> call(ResponseId response,
                               std::int64_t length,
                               std::uint64_t index,
                               std::int64_t turn_begins) const;

  Lengths turns_, results_, milliseconds_;
  std::uint64_t failures_;  ///< Of 2^32 calls.
  std::uint64_t key_;
};

/// Means of responses drawn from these distributions, by a fixed seed.
struct MeanToolCalls {
  double calls = 0;    ///< Of a response.
  double waiting = 0;  ///< Seconds of all of them.
  double results = 0;  ///< Share of a response's tokens.
};
/// Requires: the checks of all distributions succeed.
MeanToolCalls mean_tool_calls(const ToolConfig& tools, const LengthConfig& response);

}  // namespace temper::actors
