#include "orchestrator/pipeline/load.hpp"

#include "core/files.hpp"
#include "core/home_path.hpp"
#include "orchestrator/pipeline/config_paths.hpp"
#include "orchestrator/pipeline/model_section.hpp"
#include "orchestrator/pipeline/simulation.hpp"
#include "sim_hw/catalog/catalog.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace temper::orchestrator {
namespace {

constexpr std::string_view kExtends = "extends";
constexpr std::size_t kMostExtended = 8;
constexpr std::string_view kExpectedConfig =
    "; expected a YAML file or a shipped configuration such as quickstart";

/// Keys of earlier versions, and their names today.
constexpr std::array<std::pair<std::string_view, std::string_view>, 1> kRenamedKeys{
    {{"staleness.policy", "staleness.rule"}}};

void name_renamed_keys(std::vector<YamlIssue>& issues) {
  for (YamlIssue& issue : issues) {
    const auto renamed =
        std::ranges::find(kRenamedKeys, issue.key, [](const auto& names) { return names.first; });
    if (renamed != kRenamedKeys.end())
      issue.message = fmt::format("renamed: write `{}`", renamed->second);
  }
}

bool concerns(std::string_view key, std::string_view section) {
  return key.starts_with(section) &&
         (key.size() == section.size() || key[section.size()] == '.' || key[section.size()] == '[');
}

/// A rule is silent if one of its keys could not be read in the first place.
bool involves_an_issue(const BrokenRule& rule, const std::vector<YamlIssue>& issues) {
  return std::any_of(issues.begin(), issues.end(), [&](const YamlIssue& issue) {
    return std::any_of(rule.keys.begin(), rule.keys.end(), [&](const std::string& key) {
      return issue.key.empty() || concerns(key, issue.key) || concerns(issue.key, key);
    });
  });
}

bool is_file(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

std::string absolute_text(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::absolute(path, ignored).lexically_normal().string();
}

/// Replaces the path of a file that does not exist relative to the working folder, but beside the
/// configuration.
void find_beside(const std::filesystem::path& config, std::string& named) {
  const std::filesystem::path path(named);
  std::error_code ignored;
  if (path.is_relative() && !std::filesystem::exists(path, ignored) &&
      is_file(config.parent_path() / path))
    named = absolute_text(config.parent_path() / path);
}

/// Names are words without an extension.
bool may_be_path(const std::string& named) {
  return std::filesystem::path(named).has_extension();
}

void find_task(const std::filesystem::path& file, actors::TaskConfig& task) {
  std::vector<std::string*> named{&task.path};
  for (auto& [name, source] : task.sources)
    named.push_back(&source.path);
  for (std::string* const path : named) {
    if (may_be_path(*path))
      find_beside(file, *path);
  }
}

/// Their paths become absolute, so that the configuration of a run names them in every folder.
void find_simulation_files(const std::filesystem::path& file, actors::SimulationConfig& c) {
  std::vector<std::string*> named{&c.cluster, &c.model, &c.framework};
  for (actors::ClusterConfig& cluster : c.clusters)
    named.push_back(&cluster.hardware);
  std::erase_if(named, [](const std::string* name) { return !may_be_path(*name); });
  named.insert(named.end(),
               {&c.prompt.trace, &c.response.trace, &c.experts.trace, &c.faults.trace});
  if (c.trainer.experts)
    named.push_back(&c.trainer.experts->trace);
  if (c.tools)
    named.insert(named.end(),
                 {&c.tools->turn.trace, &c.tools->result.trace, &c.tools->latency.trace});
  for (std::string* const path : named) {
    find_beside(file, *path);
    if (!path->empty() && is_file(*path))
      *path = absolute_text(*path);
  }
}

}  // namespace

LoadedConfig::LoadedConfig(std::string_view name,
                           std::string_view text,
                           std::span<const std::string> sets)
    : yaml_(read_yaml<PipelineConfig>(name, text, sets)) {
  const auto is_given = [this](const std::string& key) { return yaml_.places.contains(key); };
  std::vector<YamlIssue> issues = yaml_.issues;
  name_renamed_keys(issues);
  const auto note = [this](const std::vector<ModelIssue>& found, std::vector<YamlIssue>& to) {
    for (const ModelIssue& issue : found)
      to.push_back({yaml_.place_of(issue.key), issue.key, issue.message});
  };
  note(expand_paths(yaml_.value, home_folder()), issues);
  find_task(name, yaml_.value.task);
  find_simulation_files(name, yaml_.value.simulation);
  if (yaml_.value.hardware == HardwareKind::Simulated)
    set_simulated_defaults(yaml_.value, is_given);
  else
    set_local_defaults(yaml_.value, is_given);
  const CompletedModel completed = complete_model(yaml_.value.model, is_given);
  note(completed.issues, issues);
  find_reference_model(yaml_.value);
  std::vector<YamlIssue> warnings;
  note(completed.warnings, warnings);
  warnings_ = locate(yaml_.document, std::move(warnings));
  const std::vector<YamlIssue> so_far = issues;
  value_issues_ = locate(yaml_.document, so_far);
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

std::filesystem::path found_config(const std::filesystem::path& given) {
  std::error_code ignored;
  const std::filesystem::path folder = given.parent_path();
  if (std::filesystem::exists(given, ignored) || (!folder.empty() && folder != "configs"))
    return given;
  const std::filesystem::path shipped = sim_hw::Catalog::shipped().configs();
  for (const std::string& name : {given.filename().string(), given.filename().string() + ".yaml"}) {
    if (std::filesystem::is_regular_file(shipped / name, ignored))
      return shipped / name;
  }
  return given;
}

namespace {

/// A configuration and the files it extends; the root of the chain last.
struct Chain {
  std::vector<std::filesystem::path> files;
  std::string text;  ///< Text of the last file.
};

/// The value of `extends`: a path relative to this file, or the name of a shipped configuration.
/// Empty if there is none.
Result<std::filesystem::path> extended_by(const std::filesystem::path& file,
                                          const std::string& text) {
  const YamlDocument document(file.string(), text, {});
  for (const YamlNode::Entry& entry : document.root().entries) {
    if (entry.key != kExtends)
      continue;
    auto named = expand_home(entry.node.text, home_folder());
    if (!named) {
      return std::move(named).error().within(
          fmt::format("{}: {}", document.location(entry.place), kExtends));
    }
    std::filesystem::path beside = file.parent_path() / *named;
    std::error_code ignored;
    if (std::filesystem::exists(beside, ignored))
      return beside;
    std::filesystem::path shipped = found_config(*named);
    return std::filesystem::exists(shipped, ignored) ? shipped : beside;
  }
  return std::filesystem::path();
}

Result<Chain> chain_of(const std::filesystem::path& first) {
  if (first.empty())
    return invalid_input("the name of a configuration is empty" + std::string(kExpectedConfig));
  Chain chain;
  for (std::filesystem::path file = first; !file.empty();) {
    if (chain.files.size() == kMostExtended) {
      return invalid_input(
          fmt::format("{}: `extends` forms a cycle, or a chain of more than {} "
                      "files",
                      first.string(),
                      kMostExtended));
    }
    // A pipe named by the user is fine, but a file must not make us block on one.
    if (std::error_code ignored; !chain.files.empty() && std::filesystem::exists(file, ignored) &&
                                 !std::filesystem::is_regular_file(file, ignored)) {
      return invalid_input(fmt::format("{}: extends: expected a regular file, found {}",
                                       chain.files.back().string(),
                                       file.string()));
    }
    auto text = read_file(file);
    if (!text && !chain.files.empty())
      return std::move(text).error().within(chain.files.back().string() + ": extends");
    if (!text && text.error().code == ErrorCode::NotFound)
      return Error{ErrorCode::NotFound, text.error().context + std::string(kExpectedConfig)};
    if (!text)
      return std::move(text).error();
    chain.text = *std::move(text);
    chain.files.push_back(file);
    TEMPER_TRY(file, extended_by(file, chain.text));
  }
  return chain;
}

}  // namespace

Result<ConfigFile> ConfigFile::read(const std::filesystem::path& given) {
  TEMPER_TRY(Chain chain, chain_of(found_config(given)));
  ConfigFile out;
  out.files_ = std::move(chain.files);
  out.text_ = std::move(chain.text);
  return out;
}

namespace {

/// Files that are laid over another are read again, which a pipe does not allow.
Status check_regular(std::span<const std::filesystem::path> files) {
  std::error_code ignored;
  for (const std::filesystem::path& file : files) {
    if (std::filesystem::exists(file, ignored) &&
        !std::filesystem::is_regular_file(file, ignored)) {
      return invalid_input(fmt::format(
          "{}: expected a regular file, since it extends another or is laid over one; found a pipe "
          "or device. Write it to a file first",
          file.string()));
    }
  }
  return {};
}

}  // namespace

Result<LoadedConfig> ConfigFile::load(std::span<const std::string> sets) const {
  const std::string without =
      "~" + std::string(kExtends);  // "~KEY" removes a key: the chain is resolved here.
  std::vector<std::string> layers;
  const auto lay = [&](auto file, auto end) {
    for (; file != end; ++file)
      layers.push_back("@" + file->string());
  };
  TEMPER_TRY_STATUS(check_regular(std::span(files_).first(files_.size() - 1)));
  lay(files_.rbegin() + 1, files_.rend());
  if (files_.size() > 1)
    layers.push_back(without);
  for (const std::string& set : sets) {
    if (!set.starts_with('@')) {
      layers.push_back(set);
      continue;
    }
    TEMPER_TRY(const Chain over, chain_of(set.substr(1)));
    TEMPER_TRY_STATUS(check_regular(over.files));
    lay(over.files.rbegin(), over.files.rend());
    if (over.files.size() > 1)
      layers.push_back(without);
  }
  return LoadedConfig(files_.back().string(), text_, layers);
}

Result<PipelineConfig> ConfigFile::load_valid(std::span<const std::string> sets) const {
  TEMPER_TRY(const LoadedConfig loaded, load(sets));
  if (!loaded.issues().empty())
    return config_error(loaded.issues());
  return loaded.config();
}

Result<LoadedConfig> read_config(const std::filesystem::path& given,
                                 std::span<const std::string> sets) {
  TEMPER_TRY(const ConfigFile file, ConfigFile::read(given));
  return file.load(sets);
}

Result<PipelineConfig> load_config(const std::filesystem::path& path,
                                   std::span<const std::string> sets) {
  TEMPER_TRY(const ConfigFile file, ConfigFile::read(path));
  return file.load_valid(sets);
}

}  // namespace temper::orchestrator
