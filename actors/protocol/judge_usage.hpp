// Requests, tokens and cost of language models that judge responses. Part of reward.judged, and of
// the event that records it.
#pragma once

#include "core/describe.hpp"

#include <cstdint>

namespace temper::actors {

/// All counts since the last report.
struct JudgeUsage {
  std::uint64_t requests = 0;
  std::uint64_t cached = 0;
  std::uint64_t retries = 0;
  std::uint64_t input_tokens = 0;
  std::uint64_t output_tokens = 0;
  double cost = 0;

  JudgeUsage& operator+=(const JudgeUsage& more) {
    requests += more.requests;
    cached += more.cached;
    retries += more.retries;
    input_tokens += more.input_tokens;
    output_tokens += more.output_tokens;
    cost += more.cost;
    return *this;
  }
  bool operator==(const JudgeUsage&) const = default;
};
void describe(auto& v, JudgeUsage& m) {
  v.field(1, "requests", m.requests, {.doc = "Requests, repeated ones included."});
  v.field(2, "cached", m.cached, {.doc = "Scores that a request for an equal question gave."});
  v.field(3, "retries", m.retries, {.doc = "Requests that repeat a failed one."});
  v.field(4, "input_tokens", m.input_tokens, {.doc = "Tokens of the questions, as reported."});
  v.field(5, "output_tokens", m.output_tokens, {.doc = "Tokens of the replies, as reported."});
  v.field(6, "cost", m.cost, {.doc = "Price of these tokens, by the prices of the judge."});
}

}  // namespace temper::actors
