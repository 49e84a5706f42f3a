#include "orchestrator/worker/pretrain_command.hpp"

#include "actors/policy/pretrain.hpp"
#include "actors/runtime/process.hpp"
#include "core/files.hpp"
#include "orchestrator/pipeline/load.hpp"
#include "orchestrator/worker/roles/engines.hpp"

#include <fmt/format.h>

#include <cstdio>

namespace temper::orchestrator {
namespace {

Status pretrain_to_file(const PretrainArguments& arguments) {
  if (arguments.parent != 0)
    TEMPER_TRY_STATUS(actors::die_with_parent(arguments.parent));
  TEMPER_TRY(const PipelineConfig config, load_config(arguments.config));
  use_threads(static_cast<std::size_t>(config.placement.cards));
  const actors::PretrainOptions options{
      config.model, config.task, config.pretrain, config.sampling.temperature, config.seed};
  TEMPER_TRY(const auto result, actors::pretrain(options, [](const actors::PretrainProgress& p) {
               fmt::print("step {} loss {:.3f} accuracy {:.2f}\n", p.step, p.loss, p.accuracy);
               std::fflush(stdout);
             }));
  return write_file_atomically(arguments.out, result.image);
}

}  // namespace

int run_pretrain(const PretrainArguments& arguments) {
  const Status status = pretrain_to_file(arguments);
  if (!status)
    fmt::print(stderr, "{}\n", status.error().context);
  return status ? 0 : 1;
}

}  // namespace temper::orchestrator
