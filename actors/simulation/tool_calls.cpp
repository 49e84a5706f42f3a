#include "actors/simulation/tool_calls.hpp"

#include "core/hash.hpp"

#include <algorithm>
#include <limits>
#include <span>

namespace temper::actors {
namespace {

/// Latencies in milliseconds are drawn like lengths.
LengthConfig as_lengths(const LatencyConfig& c) {
  constexpr auto kMillisecond = std::chrono::milliseconds(1);
  LengthConfig out;
  out.kind = c.trace.empty() ? LengthKind::Lognormal : LengthKind::Trace;
  out.mean = seconds(c.mean) * 1e3;
  out.p99_over_median = c.p99_over_median;
  if (c.trace.empty())
    out.cap = Tokens(c.cap / kMillisecond);
  else
    out.cap = Tokens(std::numeric_limits<std::int32_t>::max());
  out.lengths = c.milliseconds;
  return out;
}

/// Differs for all calls of all responses. Calls of one response follow each other in a trace.
std::uint64_t draw(ResponseId response, std::uint64_t index) {
  constexpr std::uint64_t kOdd = 2654435761;  // Far above the calls of a response.
  return response.value() * kOdd + index;
}

}  // namespace

Status check_tools(const ToolConfig& config) {
  for (const LengthConfig& lengths : {config.turn, config.result, as_lengths(config.latency)})
    TEMPER_TRY_STATUS(check_lengths(lengths));
  return {};
}

ToolCalls::ToolCalls(const ToolConfig& config, std::uint64_t seed)
    : turns_(config.turn, seed, "tool-turns"),
      results_(config.result, seed, "tool-results"),
      milliseconds_(as_lengths(config.latency), seed, "tool-latencies"),
      failures_(static_cast<std::uint64_t>(config.failure_rate * 0x1p32)),
      key_(hash64("tool-failures", seed)) {}

std::optional<ToolCall> ToolCalls::call(ResponseId response,
                                        std::int64_t length,
                                        std::uint64_t index,
                                        std::int64_t turn_begins) const {
  const std::uint64_t n = draw(response, index);
  const std::int64_t at = turn_begins + turns_.of(n, response.value()).count();
  if (at >= length)
    return std::nullopt;
  return ToolCall{index, at, std::min(results_.of(n, response.value()).count(), length - at - 1)};
}

std::optional<ToolCall> ToolCalls::after(ResponseId response,
                                         std::int64_t length,
                                         const ToolCall& c) const {
  return call(response, length, c.index + 1, c.at + c.result);
}

ToolCalls::Left ToolCalls::left(ResponseId response,
                                std::int64_t length,
                                std::int64_t tokens) const {
  Left out;
  for (auto c = call(response, length, 0, 0); c; c = after(response, length, *c)) {
    if (c->at < tokens)
      continue;
    if (!out.next)
      out.next = c;
    out.results += c->result;
  }
  return out;
}

Duration ToolCalls::latency(ResponseId response, const ToolCall& c) const {
  constexpr std::uint64_t kAttempts = 1000;
  constexpr std::uint64_t kApart = 1048583;  // Prime, and above the calls of a response.
  std::int64_t milliseconds = 0;
  for (std::uint64_t attempt = 0; attempt < kAttempts; ++attempt) {
    const std::uint64_t n = draw(response, c.index + attempt * kApart);
    milliseconds += milliseconds_.of(n, response.value()).count();
    if (hash64(std::as_bytes(std::span(&n, 1)), key_) >> 32 >= failures_)
      break;
  }
  return std::chrono::milliseconds(milliseconds);
}

MeanToolCalls mean_tool_calls(const ToolConfig& tools, const LengthConfig& response) {
  constexpr std::uint64_t kDrawn = 4096;      // As drawn_lengths().
  constexpr double kMostCalls = 1000 * 1000;  // Then fewer responses are enough.
  const ToolCalls calls(tools, 0);
  const Lengths lengths(response, 0, kResponseLengths);
  MeanToolCalls out;
  double tokens = 0;
  std::uint64_t responses = 0;
  for (; responses < kDrawn && out.calls < kMostCalls; ++responses) {
    const ResponseId id(responses);
    const std::int64_t length = lengths.of(responses).count();
    tokens += static_cast<double>(length);
    const ToolCalls::Left all = calls.left(id, length, 0);
    out.results += static_cast<double>(all.results);
    for (auto c = all.next; c; c = calls.after(id, length, *c)) {
      out.calls += 1;
      out.waiting += seconds(calls.latency(id, *c));
    }
  }
  out.results /= tokens;
  out.calls /= static_cast<double>(responses);
  out.waiting /= static_cast<double>(responses);
  return out;
}

}  // namespace temper::actors
