#include "orchestrator/pipeline/load.hpp"

#include "core/files.hpp"
#include "orchestrator/pipeline/model_section.hpp"
#include "orchestrator/pipeline/simulation.hpp"

#include <algorithm>

namespace temper::orchestrator {
namespace {

bool within(std::string_view key, std::string_view section) {
  return key.starts_with(section) &&
         (key.size() == section.size() || key[section.size()] == '.' || key[section.size()] == '[');
}

/// A rule says nothing where one of its keys could not be read in the first place.
bool involves_an_issue(const BrokenRule& rule, const std::vector<YamlIssue>& issues) {
  return std::any_of(issues.begin(), issues.end(), [&](const YamlIssue& issue) {
    return std::any_of(rule.keys.begin(), rule.keys.end(), [&](const std::string& key) {
      return issue.key.empty() || within(key, issue.key) || within(issue.key, key);
    });
  });
}

}  // namespace

LoadedConfig::LoadedConfig(std::string_view name,
                           std::string_view text,
                           std::span<const std::string> sets)
    : yaml_(read_yaml<PipelineConfig>(name, text, sets)) {
  const auto is_given = [this](const std::string& key) { return yaml_.places.contains(key); };
  if (yaml_.value.hardware == HardwareKind::Simulated)
    set_simulated_defaults(yaml_.value, is_given);
  else
    set_local_defaults(yaml_.value, is_given);
  std::vector<YamlIssue> issues = yaml_.issues;
  for (const ModelIssue& issue : complete_model(yaml_.value.model, is_given))
    issues.push_back({yaml_.place_of(issue.key), issue.key, issue.message});
  const std::vector<YamlIssue> so_far = issues;
  for (const BrokenRule& rule : validate(yaml_.value)) {
    const std::string& key = rule.keys.front();
    if (!involves_an_issue(rule, so_far))
      issues.push_back({yaml_.place_of(key), key, rule.message});
  }
  issues_ = locate(yaml_.document, std::move(issues));
}

ConfigIssue LoadedConfig::blame(const BrokenRule& rule) const {
  const std::string& key = rule.keys.front();
  return {yaml_.document.location(yaml_.place_of(key)), key, rule.message};
}

Result<LoadedConfig> read_config(const std::filesystem::path& path,
                                 std::span<const std::string> sets) {
  TEMPER_TRY(const std::string text, read_file(path));
  return LoadedConfig(path.string(), text, sets);
}

Result<PipelineConfig> load_config(const std::filesystem::path& path,
                                   std::span<const std::string> sets) {
  TEMPER_TRY(const LoadedConfig loaded, read_config(path, sets));
  if (!loaded.issues().empty())
    return invalid_input(render(loaded.issues()));
  return loaded.config();
}

}  // namespace temper::orchestrator
