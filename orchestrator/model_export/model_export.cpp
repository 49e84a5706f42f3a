#include "orchestrator/model_export/model_export.hpp"

#include "actors/model_folder/adapter_folder.hpp"
#include "actors/model_folder/model_folder.hpp"
#include "actors/model_folder/stored_tensors.hpp"
#include "core/files.hpp"
#include "orchestrator/pipeline/load.hpp"
#include "orchestrator/record/best_audit.hpp"
#include "orchestrator/run/run_dir.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <functional>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;
using actors::ModelFolder;

Result<FoundCheckpoint> find_checkpoint(const RunDir& run, std::optional<PolicyVersion> version) {
  std::vector<std::string> there;
  for (const FoundCheckpoint& found : run.checkpoints().find()) {
    if (!found.mark)
      continue;
    if (version && found.mark->version != *version) {
      there.push_back(fmt::format("{}", found.mark->version));
      continue;
    }
    auto whole = check_folder(found.folder);
    if (whole)
      return found;
    if (version)
      return std::move(whole).error();
    there.push_back(fmt::format("{} (damaged)", found.mark->version));
  }
  return Error{ErrorCode::NotFound,
               fmt::format("{} has no intact checkpoint{}; found: {} (number to keep: "
                           "checkpoint.keep)",
                           run.root().string(),
                           version ? fmt::format(" of version {}", *version) : std::string(),
                           there.empty() ? "none" : fmt::format("{}", fmt::join(there, ", ")))};
}

/// The model from which the run started.
Result<ModelFolder> base_of(const RunDir& run) {
  const auto config = load_config(run.file("config.yaml"));
  return ModelFolder::open(run.base(), config ? config->model.ignore : std::vector<std::string>());
}

/// The weights that a trainer saved, native or not.
Status read_checkpoint(const fs::path& checkpoint, std::span<const actors::TensorToRead> expected) {
  const fs::path file = checkpoint / actors::kWeightsFile;
  std::error_code ignored;
  if (!fs::exists(file, ignored)) {
    return Error{
        ErrorCode::NotFound,
        fmt::format("{} has no {}: the custom trainer of the run saves its weights under another "
                    "name; docs/how-to/write-a-role.md describes how to save them for an export",
                    checkpoint.string(),
                    actors::kWeightsFile)};
  }
  TEMPER_TRY(const std::string bytes, read_file(file));
  const auto read = [&]() -> Status {
    TEMPER_TRY(const auto image, actors::parse_safetensors(std::as_bytes(std::span(bytes))));
    return actors::copy_tensors(image, expected);
  };
  Status status = read();
  return status ? std::move(status) : Status(std::move(status).error().within(file.string()));
}

/// Computes the loss by rounding to bfloat16, relative to the base.
Result<RoundingLoss> rounding_loss(const ModelFolder& base,
                                   const actors::Layout& layout,
                                   std::span<const float> trained) {
  std::vector<float> before(trained.size());
  TEMPER_TRY_STATUS(base.read(actors::tensors_to_read(layout, before)));
  RoundingLoss loss;
  for (std::size_t i = 0; i < trained.size(); ++i) {
    if (trained[i] == before[i])
      continue;
    ++loss.changed;
    if (actors::to_bfloat16(trained[i]) == actors::to_bfloat16(before[i]))
      ++loss.lost;
  }
  return loss;
}

/// Fills a folder completely or not at all.
Status write_folder(const fs::path& to, const std::function<Status(const fs::path&)>& fill) {
  const fs::path partial = to.string() + ".partial";
  std::error_code ignored;
  fs::remove_all(partial, ignored);
  TEMPER_TRY_STATUS(make_folder(partial));
  TEMPER_TRY_STATUS(fill(partial));
  fs::remove(to, ignored);  // An empty folder.
  return rename_durably(partial, to);
}

Status write(const ModelFolder& base,
             actors::StoredType type,
             std::span<const actors::TensorToWrite> tensors,
             const fs::path& to) {
  actors::ModelFolderToWrite what;
  TEMPER_TRY(what.config_json, read_file(base.path() / actors::kConfigFile));
  what.type = type;
  for (const std::string& name : base.carried_files()) {
    TEMPER_TRY(what.files[name], read_file(base.path() / name));
  }
  return write_folder(to, [&](const fs::path& partial) {
    return actors::write_model_folder(partial, what, tensors);
  });
}

/// The adapter of a checkpoint and its layout over the base.
struct StoredAdapter {
  actors::AdapterConfigJson config;
  actors::AdapterLayout layout;
  std::vector<float> values;
};

Result<StoredAdapter> read_adapter(const fs::path& checkpoint, const actors::Layout& base) {
  TEMPER_TRY(auto config, actors::read_adapter_config(checkpoint));
  auto layout = actors::AdapterLayout::make(base, config.lora);
  if (!layout)
    return std::move(layout).error().within((checkpoint / actors::kAdapterConfigFile).string());
  TEMPER_TRY(auto values, actors::read_adapter(checkpoint, *layout));
  return StoredAdapter{std::move(config), *std::move(layout), std::move(values)};
}

/// Writes a folder of peft.
Status write_adapter(const StoredAdapter& adapter,
                     const fs::path& base,
                     actors::StoredType type,
                     const fs::path& to) {
  const std::string& named = adapter.config.base;
  return write_folder(to, [&](const fs::path& partial) -> Status {
    const auto tensors = actors::tensors_to_write(adapter.layout, adapter.values);
    TEMPER_TRY_STATUS(write_file_atomically(
        partial / actors::kAdapterFile,
        [&](const ByteSink& sink) { return actors::write_safetensors(tensors, {}, type, sink); }));
    return write_file_atomically(
        partial / actors::kAdapterConfigFile,
        actors::adapter_config_json(adapter.config.lora,
                                    named.empty() ? fs::absolute(base).string() : named));
  });
}

/// The weights of the exported version, merged with the adapter if it has one.
Status read_weights(const ExportedModel& exported,
                    const ModelFolder& base,
                    const actors::Layout& layout,
                    std::span<float> flat) {
  const auto expected = actors::tensors_to_read(layout, flat);
  const bool merges = actors::is_adapter_folder(exported.from);
  if (!merges && exported.from != base.path())
    return read_checkpoint(exported.from, expected);
  TEMPER_TRY_STATUS(base.read(expected));
  if (!merges)
    return {};
  TEMPER_TRY(const StoredAdapter adapter, read_adapter(exported.from, layout));
  actors::merge_adapter(adapter.layout, adapter.values, layout, flat);
  return {};
}

}  // namespace

Result<ModelExport> parse_export_source(const std::string& text) {
  const std::size_t at = text.rfind('@');
  std::error_code ignored;
  if (at == std::string::npos || fs::exists(text, ignored))
    return ModelExport{text, std::nullopt, {}};
  const std::string step = text.substr(at + 1);
  if (step == kBestFolder) {
    ModelExport best{text.substr(0, at), std::nullopt, {}};
    best.best = true;
    return best;
  }
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(step.data(), step.data() + step.size(), number);
  if (error != std::errc{} || end != step.data() + step.size())
    return invalid_input(
        fmt::format("\"{}\": expected RUN, RUN@best or RUN@STEP, STEP a number", text));
  return ModelExport{text.substr(0, at), PolicyVersion(number), {}};
}

Result<ExportedModel> find_export_source(const ModelExport& what) {
  const RunDir run(what.run);
  std::error_code ignored;
  if (!fs::exists(run.base(), ignored)) {
    return Error{
        ErrorCode::NotFound,
        fmt::format("{} is not a run folder with a model: it has no base/", run.root().string())};
  }
  TEMPER_TRY(const ModelFolder base, base_of(run));
  ExportedModel source{PolicyVersion(0), run.base(), what.type.value_or(base.type())};
  if (const fs::path first = run.base() / actors::kFirstAdapterFolder;
      actors::is_adapter_folder(first))
    source.from = first;
  if (what.best) {
    TEMPER_TRY(const BestVerdict best, verify_best(run.root()));
    if (best.state != BestState::Whole)
      return best_error(run.root(), best);
    source.from = run.root() / kBestFolder;
    source.version = best.mark->version;
  } else if (what.version != PolicyVersion(0)) {
    TEMPER_TRY(const FoundCheckpoint found, find_checkpoint(run, what.version));
    source.version = found.mark->version;
    source.from = found.folder;
  }
  return source;
}

Result<ExportedModel> export_model(const ModelExport& what) {
  std::error_code ignored;
  if (fs::exists(what.to, ignored) && !fs::is_empty(what.to, ignored))
    return invalid_input(what.to.string() +
                         " already exists and is not empty; choose another folder");
  TEMPER_TRY(ExportedModel exported, find_export_source(what));
  const fs::path of_base = RunDir(what.run).base();
  TEMPER_TRY(const ModelFolder base, base_of(RunDir(what.run)));
  TEMPER_TRY(const auto layout, actors::Layout::make(base.model(), 0));
  if (actors::is_adapter_folder(exported.from) && !what.merge) {
    exported.adapter = true;
    exported.type = what.type.value_or(actors::StoredType::Float32);
    TEMPER_TRY(const StoredAdapter adapter, read_adapter(exported.from, layout));
    TEMPER_TRY_STATUS(write_adapter(adapter, of_base, exported.type, what.to));
    return exported;
  }
  std::vector<float> flat(static_cast<std::size_t>(layout.size()));
  TEMPER_TRY_STATUS(read_weights(exported, base, layout, flat));
  if (exported.type == actors::StoredType::Bfloat16) {
    TEMPER_TRY(exported.rounding, rounding_loss(base, layout, flat));
  }
  TEMPER_TRY_STATUS(write(base, exported.type, actors::tensors_to_write(layout, flat), what.to));
  return exported;
}

Status write_merged(const actors::ModelFolder& base, const fs::path& adapter, const fs::path& to) {
  TEMPER_TRY(const auto layout, actors::Layout::make(base.model(), 0));
  std::vector<float> flat(static_cast<std::size_t>(layout.size()));
  const ExportedModel merged{PolicyVersion(0), adapter, actors::StoredType::Float32};
  TEMPER_TRY_STATUS(read_weights(merged, base, layout, flat));
  return write(base, merged.type, actors::tensors_to_write(layout, flat), to);
}

}  // namespace temper::orchestrator
