// Loads a YAML file and `--set` overrides into a validated PipelineConfig.
#pragma once

#include "core/yaml.hpp"
#include "orchestrator/pipeline/pipeline_config.hpp"
#include "orchestrator/pipeline/validate.hpp"

#include <filesystem>

namespace temper::orchestrator {

/// A configuration as read, with all its issues.
class LoadedConfig {
 public:
  /// `name`: how errors name the text, usually its file. The task, hardware and model descriptions
  /// are looked up relative to the working folder, then beside that file.
  LoadedConfig(std::string_view name, std::string_view text, std::span<const std::string> sets);

  const PipelineConfig& config() const { return yaml_.value; }
  /// In the order of the file, then of the `--set`s. Empty: the configuration is valid.
  const std::vector<ConfigIssue>& issues() const { return issues_; }
  /// Those of single values and files, without violated rules.
  const std::vector<ConfigIssue>& value_issues() const { return value_issues_; }
  /// For instance, keys of a model that are ignored.
  const std::vector<ConfigIssue>& warnings() const { return warnings_; }
  /// Reports an issue found later (the longest prompt, the machine's cards), at the place of its
  /// key.
  ConfigIssue blame(const BrokenRule& rule) const;

 private:
  YamlValue<PipelineConfig> yaml_;
  std::vector<ConfigIssue> issues_, value_issues_;
  std::vector<ConfigIssue> warnings_;
};

/// `given` if that file exists; otherwise the shipped configuration of that name: `quickstart`,
/// `configs/quickstart.yaml`.
std::filesystem::path found_config(const std::filesystem::path& given);

/// A file and those that it extends, read once for any number of overrides: the file may be a pipe.
class ConfigFile {
 public:
  /// Requires: read() replaces it before it is used.
  ConfigFile() = default;
  /// Reads found_config(given). Error: a file cannot be read.
  static Result<ConfigFile> read(const std::filesystem::path& given);
  /// As read_config().
  Result<LoadedConfig> load(std::span<const std::string> sets = {}) const;
  /// As load_config().
  Result<PipelineConfig> load_valid(std::span<const std::string> sets = {}) const;

 private:
  std::vector<std::filesystem::path> files_;  ///< The root of the chain last.
  std::string text_;                          ///< Text of the last file.
};

/// Loads found_config(path). A file with `extends: FILE` overrides keys of that file. An entry
/// "@FILE" in `sets` overlays another file (`-f`). Error: a file cannot be read. Invalid contents
/// are reported by issues().
Result<LoadedConfig> read_config(const std::filesystem::path& given,
                                 std::span<const std::string> sets = {});

/// Error InvalidInput: its context lists every issue, one per line.
Result<PipelineConfig> load_config(const std::filesystem::path& path,
                                   std::span<const std::string> sets = {});

}  // namespace temper::orchestrator
