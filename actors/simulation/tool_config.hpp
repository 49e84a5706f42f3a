// Tool calls of responses on simulated hardware: a response has several turns, and after each but
// the last it waits for a tool.
#pragma once

#include "actors/simulation/length_config.hpp"

#include <chrono>

namespace temper::actors {

struct LatencyConfig {
  Duration mean = std::chrono::seconds(10);
  double p99_over_median = 8;
  Duration cap = std::chrono::minutes(10);
  std::string trace;                       ///< File with a JSON array of milliseconds.
  std::vector<std::int32_t> milliseconds;  ///< Content of the file, filled when it is read.
};
void describe(auto& v, LatencyConfig& c) {
  v.field(1,
          "mean",
          c.mean,
          {.doc = "Mean, after the cap.", .min = Duration(std::chrono::milliseconds(1))});
  v.field(2,
          "p99_over_median",
          c.p99_over_median,
          {.doc = "Ratio of the 99th percentile to the median; 1: always the mean.",
           .min = 1.0,
           .max = 1e6});
  v.field(3,
          "cap",
          c.cap,
          {.doc = "Longest latency of the distribution.",
           .min = Duration(std::chrono::milliseconds(1)),
           .max = Duration(std::chrono::hours(24))});
  v.field(4,
          "trace",
          c.trace,
          {.doc = "JSON file of whole milliseconds, at least 1, used in order instead of the "
                  "distribution."});
  v.field(5, "milliseconds", c.milliseconds, {.doc = "Those of `trace`, read from the file."});
}

struct ToolConfig {
  LengthConfig turn{.mean = 500, .weights = {}, .trace = {}, .lengths = {}};
  LengthConfig result{.mean = 300, .cap = Tokens(8192), .weights = {}, .trace = {}, .lengths = {}};
  LatencyConfig latency;
  std::int64_t pool = 0;
  double failure_rate = 0;
};
void describe(auto& v, ToolConfig& c) {
  v.field(1,
          "turn",
          c.turn,
          {.doc = "Tokens that a response samples before a call; `sibling_correlation` is that of "
                  "the turns "
                  "of a response."});
  v.field(2,
          "result",
          c.result,
          {.doc = "Tokens of an answer. They count towards `simulation.response`, and are computed "
                  "like a prompt."});
  v.field(
      3,
      "latency",
      c.latency,
      {.doc = "Time that a tool takes for a call. All turns and calls of a response must end "
              "within `deadlines.generate`. A call continues while its engine is interrupted."});
  v.field(
      4,
      "pool",
      c.pool,
      {.doc = "Calls of an engine that tools work on at once; others wait in order. 0: no limit.",
       .min = 0});
  v.field(
      5,
      "failure_rate",
      c.failure_rate,
      {.doc = "Chance that a tool fails at the end of its latency; the call is then made again, "
              "with a latency of its own.",
       .min = 0.0,
       .max = 0.9});
}

}  // namespace temper::actors
