#include "orchestrator/model_export/adapter_start.hpp"

#include "actors/task/tokenizer.hpp"
#include "core/files.hpp"
#include "orchestrator/model_export/model_export.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;
using actors::LoraConfig;

/// As a value of model.lora, with its targets in the order of the documentation.
std::string text_of(const LoraConfig& lora) {
  std::vector<std::string> targets;
  for (const std::string_view target : LoraConfig::kTargets) {
    if (std::ranges::find(lora.targets, target) != lora.targets.end())
      targets.emplace_back(target);
  }
  return fmt::format(
      "{{rank: {}, alpha: {:g}, targets: [{}]}}", lora.rank, lora.alpha, fmt::join(targets, ", "));
}

/// Both adapters compute the same from the same tensors. The order of targets has no meaning.
bool are_alike(const LoraConfig& a, const LoraConfig& b) {
  return a.rank == b.rank && a.alpha == b.alpha &&
         std::ranges::is_permutation(a.targets, b.targets);
}

}  // namespace

Result<AdapterStart> find_adapter_start(const fs::path& folder, const PipelineConfig& config) {
  if (config.policy != actors::PolicyKind::Torch) {
    return invalid_input(fmt::format(
        "policy: expected `torch`, because a run started --from the adapter {} needs weights that "
        "the adapter belongs to, found `{}`",
        folder.string(),
        name_of(config.policy)));
  }
  AdapterStart start{folder, {}, !config.model.lora};
  TEMPER_TRY(start.config, actors::read_adapter_config(folder));
  const LoraConfig& found = start.config.lora;
  const auto in_config = [&](Error error) {
    return std::move(error).within((folder / actors::kAdapterConfigFile).string());
  };
  TEMPER_TRY(
      const auto base,
      actors::Layout::make(config.model, actors::Tokenizer::for_task(config.task).vocabulary()));
  const auto layout = actors::AdapterLayout::make(base, found);
  if (!layout)
    return in_config(layout.error());
  if (config.model.lora && !are_alike(*config.model.lora, found)) {
    return invalid_input(fmt::format(
        "model.lora: expected the shape of the adapter in {}, {}, found {}; set model.lora to the "
        "former, or remove it to start from the base merged with the adapter",
        folder.string(),
        text_of(found),
        text_of(*config.model.lora)));
  }
  TEMPER_TRY(const auto values, actors::read_adapter(folder, *layout));
  return start;
}

Status apply_adapter_start(const AdapterStart& start,
                           const PipelineConfig& config,
                           const fs::path& base) {
  if (!start.merges) {
    const fs::path to = base / actors::kFirstAdapterFolder;
    TEMPER_TRY_STATUS(make_folder(to));
    for (const std::string_view name : {actors::kAdapterFile, actors::kAdapterConfigFile}) {
      TEMPER_TRY(const std::string content, read_file(start.folder / name));
      TEMPER_TRY_STATUS(write_file_atomically(to / name, content));
    }
    return {};
  }
  TEMPER_TRY(const auto model, actors::ModelFolder::open(base, config.model.ignore));
  const fs::path merged = base.string() + ".merged";
  TEMPER_TRY_STATUS(write_merged(model, start.folder, merged));
  std::error_code error;
  fs::remove_all(base, error);
  if (error)
    return io_error("cannot remove " + base.string(), error.value());
  return rename_durably(merged, base);
}

}  // namespace temper::orchestrator
