// An engine whose responses are episodes: a program of the user's (an agent) plays each of them, as
// a client of an endpoint of ours behind which stands another engine. It calls tools, or whatever
// else it does between its requests; each request is sampled by that engine as the continuation of
// the row. Weights change under an episode as they do under any response: every token keeps the
// version that sampled it.
//
// The agent is told of an episode by a line of JSON on its stdin, and says by one on its stdout that
// it has ended (docs/agents.md). One that dies, or says nothing until its deadline, fails its
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
#include "rollout/gateway/episode_row.hpp"

#include <map>
#include <memory>

namespace temper::rollout {

struct AgentEngineOptions {
  AgentConfig agent;
  SamplingConfig sampling;
  Tokens context;          ///< Of the model: prompt and row at most.
  std::uint64_t seed = 0;  ///< Of session names.
};

/// Since the beginning.
struct AgentFigures {
  std::size_t episodes = 0;  ///< That ended well.
  std::size_t failed = 0;
  std::size_t begun_anew = 0;  ///< Withdrawn or interrupted.
  EpisodeCounts rows;          ///< Of the episodes that ended well.
  double reward = 0;           ///< Sum, as agents gave it.
  std::map<std::string, double> counts;  ///< What agents counted themselves: tool calls, for one.
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
