// Keys of a configuration that name files and folders, in which `~` and `${HOME}` are the home
// directory.
#pragma once

#include "orchestrator/pipeline/model_section.hpp"
#include "orchestrator/pipeline/pipeline_config.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace temper::orchestrator {

/// What a text is. A list has that of its elements.
enum class TextKind {
  Plain,     ///< No path.
  Path,      ///< A file or folder, or a name that may be one.
  Argument,  ///< A word of a command line: only `~/` at its beginning is replaced, as `$` may be
             ///< meant for a shell that the command starts.
  Address,   ///< An address, or a path behind `file:`.
};

/// Of a key with its sections, without indices: "verifier.command".
TextKind text_kind(std::string_view key);

/// Replaces the home directory in all of them. What is wrong: as expand_home() has it.
std::vector<ModelIssue> expand_paths(PipelineConfig& config, const std::string& home);

}  // namespace temper::orchestrator
