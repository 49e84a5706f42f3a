#include "orchestrator/pipeline/config_reference.hpp"

#include "core/markdown.hpp"
#include "orchestrator/pipeline/pipeline_config.hpp"

namespace temper::orchestrator {
namespace {

constexpr std::string_view kIntroduction =
    R"(# Configuration

A run is described by one YAML file (`configs/`). Made from the declarations in the source; a test
fails if this page is stale.

- Missing keys take their default. An unknown or repeated key is an error, as is anything of the
  wrong type or out of bounds; all errors are reported at once, each with its file, line and key.
- A duration or a size needs a unit: `250ms`, `3s`, `64MiB`, `1GB`. Tokens and other counts are
  plain integers.
- In quotes a value is text, a name or a quantity with a unit, as in JSON: `"grpo"`, `"250ms"`. A
  number, `true` and `false` are written without.
- A path may begin with `~/`, `$HOME/` or `${HOME}/`, the home directory; another variable in it is
  an error. In a command (`verifier.command`) only `~/` at the beginning of a word is replaced.
- `--set a.b=c` overrides a key; the value is YAML, so a list is `--set placement.rollout=[0]`.
  Precedence: defaults, then the file, then `--set` in order.
- Anchors, aliases, tags and several documents in one file are not supported.
- `temper check CONFIG` prints the resolved configuration and which actor runs on which cards.

)";

}  // namespace

std::string write_config_reference() {
  return std::string(kIntroduction) + to_markdown<PipelineConfig>();
}

}  // namespace temper::orchestrator
