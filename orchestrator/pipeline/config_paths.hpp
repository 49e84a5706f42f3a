// Configuration keys that name files and folders. In their values, `~` and `${HOME}` stand for the
// home directory.
#pragma once

#include "orchestrator/pipeline/model_section.hpp"
#include "orchestrator/pipeline/pipeline_config.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace temper::orchestrator {

/// The kind of a text value; a list has the kind of its elements.
enum class TextKind {
  Plain,     ///< Not a path.
  Path,      ///< A file or folder, or a name that may be one.
  Argument,  ///< A command-line argument: only a leading `~/` is replaced, as `$` may be meant for
             ///< a shell.
  Address,   ///< A network address, or a path after `file:`.
};

/// `key`: full path without list indices, such as "verifier.command".
TextKind text_kind(std::string_view key);

/// Replaces the home directory in all of them. Reports errors of expand_home() as issues.
std::vector<ModelIssue> expand_paths(PipelineConfig& config, const std::string& home);

}  // namespace temper::orchestrator
