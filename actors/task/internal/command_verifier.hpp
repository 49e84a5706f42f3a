// The verifier that runs a user's program. Each process of the pool reads one line of JSON per
// response and writes one line of JSON, in order, for as long as it runs:
//
//   stdin   {"prompt": "2+2=", "answer": "4", "response": "It is 4"}
//   stdout  {"reward": 1}
//
// Other fields of a reply are ignored. If a reply is late, malformed or missing (the process
// ended), or stderr is flooded, the sample fails and the process is replaced. Invalid UTF-8 bytes
// are replaced before text is sent.
//
// No process outlives this one: see actors/guard/guarded_process.hpp.
#pragma once

#include "actors/task/verifier.hpp"
#include "core/clock.hpp"

#include <string_view>

namespace temper::actors {

/// Limits on the output for one sample, in bytes.
inline constexpr std::size_t kLongestReply = std::size_t{1} << 16;
inline constexpr std::size_t kMostErrorText = std::size_t{1} << 20;

/// First and longest delay before the process that follows one that never replied.
inline constexpr Duration kFirstPause = std::chrono::milliseconds(10);
inline constexpr Duration kLongestPause = std::chrono::seconds(1);

/// Starts the pool. Error: the command cannot be started. Requires: kind is Command.
Result<std::unique_ptr<Verifier>> make_command_verifier(const SingleVerifier& config,
                                                        std::unique_ptr<const Clock> clock);

/// The reward in a reply line. Error InvalidInput: the line has no valid reward.
Result<double> parse_reply(std::string_view line);

}  // namespace temper::actors
