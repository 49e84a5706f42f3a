#include "orchestrator/start/python_imports.hpp"

#include "actors/guard/executable.hpp"
#include "core/clock.hpp"
#include "core/files.hpp"
#include "core/json_document.hpp"
#include "core/temporary_folder.hpp"
#include "orchestrator/pipeline/teachers.hpp"
#include "orchestrator/run/processes/exit_reason.hpp"
#include "orchestrator/run/processes/run_program.hpp"
#include "orchestrator/run/role_configs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <sstream>

namespace temper::orchestrator {
namespace {

using actors::RoleKind;

/// Time limit; modules that import a framework for accelerators load slowly on a busy machine.
constexpr Duration kLongestImport = std::chrono::minutes(2);

/// A line of the input of `python -m temper.check`.
struct Import {
  std::string kind;
  std::string key;
  std::string name;
};

using Imports = std::map<std::string, std::vector<Import>>;  ///< By interpreter.

/// Whether roles of this kind write or read tensors of responses.
bool has_tensors(RoleKind role) {
  return role == RoleKind::Rollout || role == RoleKind::Trainer;
}

/// What the interpreter of this engine is asked.
std::vector<Import>& asked_with(const actors::EngineConfig& engine, Imports& imports) {
  return imports[engine.python.empty() ? actors::default_python() : engine.python];
}

void add_references(const PipelineConfig& config, Imports& imports) {
  for (const Teacher& teacher : teachers_by_engine(config)) {
    const actors::EngineConfig& engine = teacher.engine;
    if (engine.kind != actors::EngineKind::Python || teacher.replicas == 0 ||
        config.reference.launch != LaunchKind::Local)
      continue;
    asked_with(engine, imports)
        .push_back({"reference", teacher.engine_section + ".engine.use", engine.use});
  }
}

void add_role(const PipelineConfig& config, RoleKind role, LaunchKind launch, Imports& imports) {
  const actors::EngineConfig engine = engine_of(config, role);
  if (engine.kind != actors::EngineKind::Python || launch != LaunchKind::Local)
    return;
  std::vector<Import>& asked = asked_with(engine, imports);
  const actors::VerifierConfig& v = config.verifier;
  if (role != RoleKind::Reward || config.reward.engine.kind == actors::EngineKind::Python) {
    asked.push_back(
        {std::string(name_of(role)), fmt::format("{}.engine.use", name_of(role)), engine.use});
    if (has_tensors(role) && config.payloads.store == TensorStoreKind::Redis)
      asked.push_back({"store", "payloads.store", "redis"});
    return;
  }
  if (v.kind == actors::VerifierKind::Python) {
    if (!v.function.empty())
      asked.push_back({"function", "verifier.function", v.function});
    for (const auto& [name, weight] : v.functions)
      asked.push_back({"function", "verifier.functions", name});
    return;
  }
  for (const auto& [name, term] : actors::terms_of(v)) {
    const std::string section = section_of(v, name);
    if (term.kind == actors::VerifierKind::Python)
      asked.push_back({"function", section + ".function", term.function});
    if (term.kind == actors::VerifierKind::Judge)
      asked.push_back({"pattern", section + ".judge.pattern", term.judge.pattern});
    if (term.kind == actors::VerifierKind::Model)
      asked.push_back({"classifier", section + ".kind", term.model.path});
  }
}

/// The key that names the interpreter of these imports.
std::string interpreter_key(const std::vector<Import>& imports) {
  const std::string& key = imports.front().key;
  return key.ends_with(".use") ? key.substr(0, key.rfind('.')) + ".python" : "reward.engine.python";
}

/// Reports the result of each import, in order, and the import that ended the interpreter.
std::vector<BrokenRule> problems_in(const std::string& report,
                                    const std::vector<Import>& imports,
                                    const Status& ended) {
  std::vector<BrokenRule> broken;
  std::istringstream lines(report);
  std::string line;
  std::getline(lines, line);  // "ready"
  for (const Import& import : imports) {
    if (!std::getline(lines, line)) {
      if (!ended)
        broken.push_back({{import.key}, ended.error().context});
      break;
    }
    const nlohmann::json found = parse_json(line);
    if (!found.is_object() || !found.contains("message") || !found["message"].is_string())
      continue;
    if (const auto message = found["message"].get<std::string>(); !message.empty())
      broken.push_back({{import.key}, message});
  }
  return broken;
}

Result<std::vector<BrokenRule>> import_with(const std::string& python,
                                            const std::vector<Import>& imports) {
  TEMPER_TRY(const std::string program, actors::find_executable(python));
  TEMPER_TRY(const TemporaryFolder folder, TemporaryFolder::create());
  const std::filesystem::path report = folder.path() / "report", log = folder.path() / "log";
  ChildSpec spec{"imports", {program, "-m", "temper.check", report.string()}, {}, log};
  for (const Import& import : imports)
    spec.command.insert(spec.command.end(), {import.kind, import.key, import.name});
  const RealClock clock;
  bool late = false;
  const Status ended =
      run_program(spec, fmt::format("importing \"{}\"", imports.front().name), nullptr, [&] {
        late = clock.now() >= Time(kLongestImport);
        return late;
      });
  const auto said = read_file(report);
  if (said && said->starts_with("ready\n"))
    return problems_in(*said, imports, late ? Status() : ended);
  if (late)
    return std::vector<BrokenRule>();
  return std::vector<BrokenRule>{
      {{imports.front().key},
       fmt::format("{} cannot import the temper package: {}; set an interpreter that has it in "
                   "TEMPER_PYTHON or {}, or install the package with `pip install ./python` "
                   "(docs/how-to/install.md)",
                   program,
                   last_words(read_file(log).value_or(""), ended),
                   interpreter_key(imports))}};
}

}  // namespace

std::vector<BrokenRule> broken_imports(const PipelineConfig& config) {
  Imports imports;
  add_role(config, RoleKind::Rollout, config.rollout.launch, imports);
  add_role(config, RoleKind::Trainer, config.trainer.launch, imports);
  add_references(config, imports);
  add_role(config, RoleKind::Reward, config.reward.launch, imports);
  std::vector<BrokenRule> broken;
  for (const auto& [python, asked] : imports) {
    auto found = import_with(python, asked);
    if (!found)
      broken.push_back({{asked.front().key}, found.error().context});
    else
      std::ranges::move(*found, std::back_inserter(broken));
  }
  return broken;
}

}  // namespace temper::orchestrator
