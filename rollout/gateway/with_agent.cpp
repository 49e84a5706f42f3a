#include "rollout/gateway/with_agent.hpp"

#include "rollout/gateway/engine.hpp"

namespace temper::rollout {

Result<std::unique_ptr<Engine>> with_agent(std::unique_ptr<Engine> engine,
                                           const actors::RoleConfig& role,
                                           const RolloutSettings& settings,
                                           const RealClock& clock) {
  if (settings.agent.command.empty())
    return engine;
  const actors::Vocabulary& v = role.vocabulary;
  TEMPER_TRY(auto tokenizer,
             v.folder.empty() ? actors::Tokenizer::for_task(role.task)
                              : actors::Tokenizer::of_model(role.task, {v.folder, v.size, v.ends}));
  const auto own = std::make_shared<const RealClock>(clock);
  // A synthetic policy has no network, hence no limit.
  const Tokens context =
      role.policy == actors::PolicyKind::Synthetic ? Tokens(1 << 30) : role.model.context;
  const AgentEngineOptions options{settings.agent, settings.sampling, context};
  TEMPER_TRY(auto made,
             make_agent_engine(
                 std::move(engine), options, std::move(tokenizer), own, Log::to_stderr(*own)));
  return std::unique_ptr<Engine>(std::move(made));
}

}  // namespace temper::rollout
