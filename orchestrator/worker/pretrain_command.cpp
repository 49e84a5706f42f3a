#include "orchestrator/worker/pretrain_command.hpp"

#include "actors/model_folder/model_folder.hpp"
#include "actors/model_folder/stored_tensors.hpp"
#include "actors/policy/pretrain.hpp"
#include "actors/runtime/process.hpp"
#include "actors/task/tokenizer.hpp"
#include "core/files.hpp"
#include "orchestrator/pipeline/load.hpp"
#include "orchestrator/worker/roles/engines.hpp"

#include <fmt/format.h>

#include <cstdio>

namespace temper::orchestrator {
namespace {

/// The base as a folder that other programs can load, with the built-in tokenizer in their format.
Status write_folder(const PipelineConfig& config,
                    const actors::Weights& weights,
                    const std::filesystem::path& folder) {
  const actors::Tokenizer tokenizer = actors::Tokenizer::for_task(config.task);
  actors::ConfigJson description{config.model, actors::StoredType::Float32, tokenizer.ends()};
  description.model.vocabulary = weights.layout().vocabulary();
  actors::ModelFolderToWrite what;
  what.config_json = actors::write_config_json(description);
  what.files[std::string(actors::kTokenizerFile)] = actors::tokenizer_json_of(tokenizer);
  what.files["tokenizer_config.json"] =
      "{\n  \"tokenizer_class\": \"PreTrainedTokenizerFast\",\n  \"pad_token\": \"<pad>\",\n"
      "  \"eos_token\": \"<end>\",\n  \"clean_up_tokenization_spaces\": false\n}\n";
  TEMPER_TRY_STATUS(make_folder(folder));
  return actors::write_model_folder(
      folder, what, tensors_to_write(weights.layout(), weights.values().span()));
}

Status pretrain_to_folder(const PretrainArguments& arguments) {
  if (arguments.parent != 0)
    TEMPER_TRY_STATUS(actors::die_with_parent(arguments.parent));
  TEMPER_TRY(const PipelineConfig config, load_config(arguments.config));
  use_threads(static_cast<std::size_t>(config.placement.cards));
  const actors::PretrainOptions options{
      config.model, config.task, config.pretrain, config.sampling.temperature, config.seed};
  const auto say = [&](const actors::PretrainProgress& p) {
    fmt::print("step {} of {} loss {:.3f} accuracy {:.2f} of {:.2f}\n",
               p.step,
               config.pretrain.max_steps,
               p.loss,
               p.accuracy,
               config.pretrain.target_accuracy);
    std::fflush(stdout);
  };
  TEMPER_TRY(const auto result, actors::pretrain(options, say));
  return write_folder(config, result.weights, arguments.out);
}

}  // namespace

int run_pretrain(const PretrainArguments& arguments) {
  const Status status = pretrain_to_folder(arguments);
  if (!status)
    fmt::print(stderr, "{}\n", status.error().context);
  return status ? 0 : 1;
}

}  // namespace temper::orchestrator
