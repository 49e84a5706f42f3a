// The section `rollout.agent`: a program of the user's that plays each response as an episode of
// several turns, as a client of the run's own endpoint (rollout/gateway/).
#pragma once

#include "core/describe.hpp"
#include "core/units.hpp"

#include <string>
#include <vector>

namespace temper::rollout {

struct AgentConfig {
  std::vector<std::string> command;  ///< Empty: there is none, and a response is one turn.
  std::int32_t processes = 1;
  std::int32_t turns = 16;
  Duration deadline = std::chrono::minutes(2);
  std::vector<std::string> environment;
};

template <class V>
void describe(V& v, AgentConfig& c) {
  v.field(1,
          "command",
          c.command,
          {.doc = "The program and its arguments, started beside each engine (docs/agents.md); "
                  "empty: none, and every response is one turn.",
           .example = "[python3, my_agent.py]"});
  v.field(2,
          "processes",
          c.processes,
          {.doc = "How many of them for each engine; each plays many episodes at once.",
           .min = 1,
           .max = 256});
  v.field(3, "turns", c.turns, {.doc = "Requests of one episode at most.", .min = 1});
  v.field(4,
          "deadline",
          c.deadline,
          {.doc = "Time for one episode; past it its response fails.",
           .min = std::chrono::milliseconds(1)});
  v.field(5,
          "environment",
          c.environment,
          {.doc = "Variables that the program is given of ours, beside those that every program is "
                  "given (verifier.environment).",
           .example = "[PYTHONPATH]"});
}

}  // namespace temper::rollout
