// The verifier that asks a program of the user's. Each process of the pool answers one line of JSON
// with one line of JSON, in order, for as long as it runs:
//
//   stdin   {"prompt": "2+2=", "answer": "4", "response": "It is 4"}
//   stdout  {"reward": 1}
//
// Other fields of a reply are ignored. A reply that is late, malformed or missing (the process
// ended), or a flood on stderr, fails that sample, and the process is replaced. Text that is not
// UTF-8 has its bad bytes replaced before it is sent.
//
// Nothing survives us: see actors/guard/guarded_process.hpp.
#pragma once

#include "actors/task/verifier.hpp"
#include "core/clock.hpp"

#include <string_view>

namespace temper::actors {

/// What a command may say at most for one sample, in bytes.
inline constexpr std::size_t kLongestReply = std::size_t{1} << 16;
inline constexpr std::size_t kMostErrorText = std::size_t{1} << 20;

/// Of the pauses before a process that follows one which never answered.
inline constexpr Duration kFirstPause = std::chrono::milliseconds(10);
inline constexpr Duration kLongestPause = std::chrono::seconds(1);

/// Starts the pool. Error: a command that cannot be started. Requires: kind is Command.
Result<std::unique_ptr<Verifier>> make_command_verifier(const VerifierConfig& config,
                                                        std::unique_ptr<const Clock> clock);

/// The reward in a reply line. Error: what is wrong with it.
Result<double> parse_reply(std::string_view line);

}  // namespace temper::actors
