#include "orchestrator/pipeline/config_reference.hpp"

#include "core/markdown.hpp"
#include "orchestrator/pipeline/pipeline_config.hpp"

namespace temper::orchestrator {
namespace {

constexpr std::string_view kIntroduction =
    R"(# Configuration

One YAML file describes a run; `configs/` has examples. This page is generated from the source, and
a test fails if it is stale.

- Missing keys take their default. An unknown or repeated key, a wrong type and a value out of
  bounds are errors. All errors are reported at once, each with its file, line and key.
- A duration or a size needs a unit: `250ms`, `3s`, `64MiB`, `1GB`. Tokens and other counts are
  plain integers.
- As in JSON, quotes are for text, names and quantities with a unit (`"grpo"`, `"250ms"`). Numbers,
  `true` and `false` have no quotes.
- A path may begin with `~/`, `$HOME/` or `${HOME}/`. Any other variable in it is an error. In a
  command (`verifier.command`), only a `~/` at the beginning of an argument is replaced.
- `extends: FILE` inherits the keys that this file does not set from FILE, a path or the name of a
  shipped configuration.
- `--set a.b=c` overrides a key. The value is YAML, so a list is `--set placement.rollout=[0]`.
  Precedence: defaults, then the file, then `--set` in order.
- A file or `--set` over another file merges sections key by key, and replaces lists. A map, such as
  `task.sources` or `reference.teachers`, gets more entries. `{}` removes all inherited entries
  (`--set reference.teachers={}`), and `null` or no value removes one (`--set reference.teachers.math=null`).
- Anchors, aliases, tags and several documents in one file are not supported.
- `temper check CONFIG` prints the resolved configuration, and which actor runs on which cards.

)";

}  // namespace

std::string write_config_reference() {
  return std::string(kIntroduction) + to_markdown<PipelineConfig>();
}

}  // namespace temper::orchestrator
