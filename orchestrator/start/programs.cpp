#include "orchestrator/start/programs.hpp"

#include "actors/guard/executable.hpp"
#include "orchestrator/pipeline/teachers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <optional>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;

/// The script that an interpreter is asked to run. None: the program is not an interpreter, or
/// options come first.
std::optional<fs::path> script_of(const std::vector<std::string>& command) {
  constexpr std::array<std::string_view, 8> kInterpreters{
      "python", "bash", "sh", "dash", "perl", "ruby", "node", "julia"};
  std::string name = fs::path(command.front()).filename().string();
  while (!name.empty() &&
         (std::isdigit(static_cast<unsigned char>(name.back())) != 0 || name.back() == '.'))
    name.pop_back();  // As in python3.11.
  if (command.size() < 2 || command[1].empty() || command[1].starts_with('-') ||
      std::ranges::find(kInterpreters, name) == kInterpreters.end())
    return std::nullopt;
  return command[1];
}

class Programs {
 public:
  void need(const std::string& program, const std::string& key) {
    if (const auto found = actors::find_executable(program); !found)
      missing_.push_back({{key}, found.error().context});
  }
  void need(const std::vector<std::string>& command, const std::string& key) {
    if (command.empty())
      return;
    need(command.front(), key);
    std::error_code ignored;
    if (const auto script = script_of(command); script && !fs::exists(*script, ignored)) {
      missing_.push_back({{key},
                          fmt::format("script {} of {} does not exist; the working folder is {}",
                                      script->string(),
                                      command.front(),
                                      fs::current_path().string())});
    }
  }
  /// For workers that this run starts; programs of attached workers are not checked.
  void need(const actors::EngineConfig& engine, LaunchKind launch, const std::string& section) {
    if (launch == LaunchKind::Attach)
      return;
    if (engine.kind == actors::EngineKind::Command)
      need(engine.command, section + ".engine.command");
    if (engine.kind == actors::EngineKind::Python)
      need_python(engine.python, section + ".engine.python", section + ".engine.kind");
  }
  /// `given`: interpreter in the key `named`; if empty, the default one, which `kind` needs.
  void need_python(const std::string& given, const std::string& named, const std::string& kind) {
    const std::string python = given.empty() ? actors::default_python() : given;
    if (const auto found = actors::find_executable(python); !found) {
      missing_.push_back({{given.empty() ? kind : named},
                          fmt::format("{}; name a Python interpreter in TEMPER_PYTHON or {}",
                                      found.error().context,
                                      named)});
    }
  }
  std::vector<BrokenRule> take() { return std::move(missing_); }

 private:
  std::vector<BrokenRule> missing_;
};

}  // namespace

std::vector<BrokenRule> missing_programs(const PipelineConfig& config) {
  Programs programs;
  const bool judges_here = config.reward.launch == LaunchKind::Local;
  for (const auto& [name, term] : actors::terms_of(config.verifier)) {
    if (judges_here && term.kind == actors::VerifierKind::Command)
      programs.need(term.command, section_of(config.verifier, name) + ".command");
  }
  if (judges_here && actors::needs_python(config.verifier))
    programs.need_python(config.reward.engine.python, "reward.engine.python", "verifier.kind");
  programs.need(config.rollout.engine, config.rollout.launch, "rollout");
  if (config.rollout.launch == LaunchKind::Local)
    programs.need(config.rollout.agent.command, "rollout.agent.command");
  programs.need(config.trainer.engine, config.trainer.launch, "trainer");
  for (const Teacher& teacher : teachers_by_engine(config))
    programs.need(teacher.engine, config.reference.launch, teacher.engine_section);
  programs.need(config.reward.engine, config.reward.launch, "reward");
  programs.need(config.alarms.on_alarm, "alarms.on_alarm");
  return programs.take();
}

}  // namespace temper::orchestrator
