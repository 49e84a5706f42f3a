// The section `rollout.agent`: a user program that plays each response as a multi-turn episode. It
// is a client of the run's own OpenAI-compatible endpoint (rollout/gateway/).
#pragma once

#include "core/describe.hpp"
#include "core/units.hpp"

#include <string>
#include <vector>

namespace temper::rollout {

struct AgentConfig {
  std::vector<std::string> command;  ///< Empty: no agent; every response has one turn.
  std::int32_t processes = 1;
  std::int32_t turns = 16;
  Duration deadline = std::chrono::minutes(2);
  std::vector<std::string> environment;
};

void describe(auto& v, AgentConfig& c) {
  v.field(
      1,
      "command",
      c.command,
      {.doc = "Program and arguments, started for each engine (docs/how-to/agents.md). Empty: no "
              "agent; every response has one turn.",
       .example = "[python3, my_agent.py]"});
  v.field(2,
          "processes",
          c.processes,
          {.doc = "Agent processes per engine. Each plays many episodes at once.",
           .min = 1,
           .max = 256});
  v.field(3, "turns", c.turns, {.doc = "Largest number of requests per episode.", .min = 1});
  v.field(4,
          "deadline",
          c.deadline,
          {.doc = "Time limit of one episode. An episode that exceeds it fails.",
           .min = std::chrono::milliseconds(1)});
  v.field(5,
          "environment",
          c.environment,
          {.doc = "Environment variables to pass to the program, in addition to those that every "
                  "program receives (`verifier.environment`).",
           .example = "[PYTHONPATH]"});
}

}  // namespace temper::rollout
