#include "orchestrator/run/live/base_checkpoint.hpp"

#include "actors/model_folder/model_folder.hpp"
#include "actors/task/same_problems.hpp"
#include "core/cache_folder.hpp"
#include "core/files.hpp"
#include "core/hash.hpp"
#include "core/manifest.hpp"
#include "core/msgpack.hpp"
#include "core/yaml.hpp"
#include "orchestrator/run/processes/run_program.hpp"

#include <fmt/format.h>
#include <unistd.h>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;

/// Equal inputs, equal name. The first part is raised when pretraining itself changes.
std::string cache_name(const PipelineConfig& c) {
  actors::ModelConfig model = c.model;
  model.compute_dtype = {};  // Pretraining uses neither.
  model.lora.reset();
  const std::string inputs = encode(model) + encode(actors::same_problems(c.task)) +
                             encode(c.pretrain) + encode(c.sampling.temperature) + encode(c.seed);
  return fmt::format("base-v2-{:016x}", hash64(inputs));
}

/// A folder with a temporary name until it is complete. Leftovers of earlier attempts are removed.
Result<fs::path> begin_folder(const fs::path& whole) {
  fs::path partial = whole.string() + ".partial";
  std::error_code ignored;
  fs::remove_all(partial, ignored);
  TEMPER_TRY_STATUS(make_folder(partial));
  return partial;
}

Status complete_folder(const fs::path& partial, const fs::path& whole) {
  std::error_code ignored;
  fs::remove_all(whole, ignored);
  return rename_durably(partial, whole);
}

/// Pretrains into a folder beside `cached`, of this process alone.
Result<fs::path> make_base(const PipelineConfig& config,
                           const BaseCheckpointOptions& options,
                           const fs::path& cached) {
  const fs::path yaml = options.folder.string() + ".config.yaml";
  TEMPER_TRY(const fs::path made, begin_folder(fmt::format("{}.{}", cached.string(), getpid())));
  TEMPER_TRY_STATUS(write_file_atomically(yaml, to_yaml(config)));
  ChildSpec spec;
  spec.name = "pretrain";
  spec.command = {options.worker.string(),
                  "pretrain",
                  "--config",
                  yaml.string(),
                  "--out",
                  made.string(),
                  "--parent",
                  std::to_string(getpid())};
  spec.log = options.log;
  const Status status = run_program(spec, "pretraining", options.on_progress, options.stopped);
  std::error_code ignored;
  fs::remove(yaml, ignored);
  if (!status) {
    fs::remove_all(made, ignored);
    return status.error();
  }
  TEMPER_TRY(auto files, sum_folder(made));
  TEMPER_TRY_STATUS(write_manifest(made / kFolderManifest, {{}, std::move(files)}));
  return made;
}

/// Its files except the manifest. Error: a file has changed.
Status copy_cached(const fs::path& cached, const fs::path& to) {
  TEMPER_TRY(const Manifest manifest, check_folder(cached));
  for (const FileSum& file : manifest.files) {
    TEMPER_TRY(const std::string content, read_file(cached / file.name));
    TEMPER_TRY_STATUS(write_file_atomically(to / file.name, content));
  }
  return {};
}

/// Into the cache, unless another start was faster: who reads there finds it whole. That it cannot
/// be kept is no error of the run, which has its own copy.
void keep_base(const fs::path& made, const fs::path& cached) {
  std::error_code ignored;
  if (check_folder(cached) || !complete_folder(made, cached))
    fs::remove_all(made, ignored);
}

Status pretrain_base(const PipelineConfig& config,
                     const BaseCheckpointOptions& options,
                     const fs::path& to) {
  TEMPER_TRY_STATUS(make_folder(cache_folder()));
  const fs::path cached = cache_folder() / cache_name(config);
  if (copy_cached(cached, to))
    return {};
  TEMPER_TRY(const fs::path made, make_base(config, options, cached));
  TEMPER_TRY_STATUS(copy_cached(made, to));
  keep_base(made, cached);
  return {};
}

Status take_base(const actors::ModelConfig& model, const fs::path& to) {
  TEMPER_TRY(const auto folder, actors::ModelFolder::open(model.path, model.ignore));
  actors::ModelConfig said = folder.model();
  said.path = model.path;
  said.context = model.context;
  said.compute_dtype = model.compute_dtype;
  said.lora = model.lora;
  said.end_tokens = model.end_tokens;
  if (said != model)
    return invalid_input(
        fmt::format("{} is not the model that the configuration was completed from", model.path));
  TEMPER_TRY(const auto layout, actors::Layout::make(model, 0));
  // Its values were checked with the configuration.
  TEMPER_TRY_STATUS(folder.check_tensors(layout));
  return folder.link_to(to);
}

}  // namespace

Status provide_base_checkpoint(const PipelineConfig& config, const BaseCheckpointOptions& options) {
  TEMPER_TRY(const fs::path partial, begin_folder(options.folder));
  TEMPER_TRY_STATUS(config.model.path.empty() ? pretrain_base(config, options, partial)
                                              : take_base(config.model, partial));
  return complete_folder(partial, options.folder);
}

}  // namespace temper::orchestrator
