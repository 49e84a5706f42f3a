// An engine whose responses are episodes: a program of the user's (an agent) plays each of them, as
// a client of an endpoint of ours behind which stands another engine. It calls tools, or whatever
// else it does between its requests; each request is sampled by that engine as the continuation of
// the row. Weights change under an episode as they do under any response: every token keeps the
// version that sampled it.
//
// The agent is told of an episode by a line of JSON on its stdin, and says by one on its stdout
// that it has ended (docs/agents.md). One that dies, or says nothing until its deadline, fails its
// episodes; it is started again.
//
// An episode that is withdrawn or interrupted is played again from its beginning, wherever it goes
// on: what the agent did cannot be taken to another process.
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
  Tokens context;  ///< Of the model: prompt and row at most.
};

class AgentEngine : public Engine {
 public:
  virtual const AgentFigures& figures() const = 0;
};

/// Errors: no port, a program that cannot be started.
Result<std::unique_ptr<AgentEngine>> make_agent_engine(std::unique_ptr<Engine> engine,
                                                       const AgentEngineOptions& options,
                                                       actors::Tokenizer tokenizer,
                                                       std::shared_ptr<const Clock> clock,
                                                       Log log);

}  // namespace temper::rollout
