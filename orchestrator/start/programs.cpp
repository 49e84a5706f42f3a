#include "orchestrator/start/programs.hpp"

#include "actors/guard/executable.hpp"

namespace temper::orchestrator {
namespace {

class Programs {
 public:
  void need(const std::string& program, const std::string& key) {
    if (const auto found = actors::find_executable(program); !found)
      missing_.push_back({{key}, found.error().context});
  }
  void need(const std::vector<std::string>& command, const std::string& key) {
    if (!command.empty())
      need(command.front(), key);
  }
  /// Of workers that this run starts; those that attach are others' business.
  void need(const actors::EngineConfig& engine, LaunchKind launch, const std::string& section) {
    if (launch == LaunchKind::Attach)
      return;
    if (engine.kind == actors::EngineKind::Command)
      need(engine.command, section + ".engine.command");
    if (engine.kind == actors::EngineKind::Python)
      need_python(engine.python, section + ".engine.python", section + ".engine.kind");
  }
  /// `given`: by the key `named`; else the one that `kind` asks for.
  void need_python(const std::string& given, const std::string& named, const std::string& kind) {
    need(given.empty() ? actors::default_python() : given, given.empty() ? kind : named);
  }
  std::vector<BrokenRule> take() { return std::move(missing_); }

 private:
  std::vector<BrokenRule> missing_;
};

}  // namespace

std::vector<BrokenRule> missing_programs(const PipelineConfig& config) {
  Programs programs;
  const bool judges_here = config.reward.launch == LaunchKind::Local;
  if (judges_here && config.verifier.kind == actors::VerifierKind::Command)
    programs.need(config.verifier.command, "verifier.command");
  if (judges_here && config.verifier.kind == actors::VerifierKind::Python)
    programs.need_python("", "", "verifier.kind");
  programs.need(config.rollout.engine, config.rollout.launch, "rollout");
  if (config.rollout.launch == LaunchKind::Local)
    programs.need(config.rollout.agent.command, "rollout.agent.command");
  programs.need(config.trainer.engine, config.trainer.launch, "trainer");
  programs.need(config.reference.engine, config.reference.launch, "reference");
  programs.need(config.reward.engine, config.reward.launch, "reward");
  programs.need(config.alarms.on_alarm, "alarms.on_alarm");
  return programs.take();
}

}  // namespace temper::orchestrator
