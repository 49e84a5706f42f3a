// From a YAML file and `--set`s to a checked PipelineConfig.
#pragma once

#include "core/yaml.hpp"
#include "orchestrator/pipeline/pipeline_config.hpp"
#include "orchestrator/pipeline/validate.hpp"

#include <filesystem>

namespace temper::orchestrator {

/// A configuration as read, with everything that is wrong with it.
class LoadedConfig {
 public:
  /// `name` is what errors call the text: its file, beside which hardware and models that it names
  /// by their paths may lie too, where they are not as seen from the working folder.
  LoadedConfig(std::string_view name, std::string_view text, std::span<const std::string> sets);

  const PipelineConfig& config() const { return yaml_.value; }
  /// In the order of the file, then of the `--set`s. Empty: the configuration is good.
  const std::vector<ConfigIssue>& issues() const { return issues_; }
  /// What is no fault and should be known: keys of a model that are ignored.
  const std::vector<ConfigIssue>& warnings() const { return warnings_; }
  /// A rule broken later (the longest prompt, the machine's cards), with the place of its key.
  ConfigIssue blame(const BrokenRule& rule) const;

 private:
  YamlValue<PipelineConfig> yaml_;
  std::vector<ConfigIssue> issues_;
  std::vector<ConfigIssue> warnings_;
};

/// The file as given where it is there; else the shipped one that is meant: `quickstart`,
/// `configs/quickstart.yaml`.
std::filesystem::path found_config(const std::filesystem::path& given);

/// Of found_config(). A file that says `extends: FILE` is laid over that one. Of `sets`, "@FILE"
/// lays another file over it (`-f`). Error: a file cannot be read. What is wrong in it is in
/// issues().
Result<LoadedConfig> read_config(const std::filesystem::path& given,
                                 std::span<const std::string> sets = {});

/// Error InvalidInput: its context is every issue, one per line.
Result<PipelineConfig> load_config(const std::filesystem::path& path,
                                   std::span<const std::string> sets = {});

}  // namespace temper::orchestrator
