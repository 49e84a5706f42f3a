// An engine whose responses are multi-turn episodes. A user program (an agent) plays each episode
// as a client of Temper's endpoint, behind which another engine samples. Between its requests the
// agent calls tools, or does anything else; each request is sampled as the continuation of the row.
// Weights may change during an episode as during any response: every token keeps the version that
// sampled it.
//
// The agent receives an episode as a line of JSON on its stdin, and reports its end by a line on
// its stdout (docs/how-to/agents.md). If the agent dies, or misses the deadline, its episodes fail;
// it is restarted.
//
// An episode that is withdrawn or interrupted is replayed from its beginning, wherever it
// continues, because the state of the agent cannot move to another process.
#pragma once

#include "actors/task/tokenizer.hpp"
#include "core/clock.hpp"
#include "core/log.hpp"
#include "rollout/agent_config.hpp"
#include "rollout/engine.hpp"
#include "rollout/gateway/agent_figures.hpp"

#include <memory>

namespace temper::rollout {

struct AgentEngineOptions {
  AgentConfig agent;
  SamplingConfig sampling;
  Tokens context;  ///< Of the model; limits prompt and row.
};

class AgentEngine : public Engine {
 public:
  virtual const AgentFigures& figures() const = 0;
};

/// Errors: no port; a program that cannot be started.
Result<std::unique_ptr<AgentEngine>> make_agent_engine(std::unique_ptr<Engine> engine,
                                                       const AgentEngineOptions& options,
                                                       actors::Tokenizer tokenizer,
                                                       std::shared_ptr<const Clock> clock,
                                                       Log log);

}  // namespace temper::rollout
