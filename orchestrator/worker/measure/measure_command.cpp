#include "orchestrator/worker/measure/measure_command.hpp"

#include "actors/runtime/process.hpp"
#include "core/files.hpp"
#include "core/msgpack.hpp"
#include "orchestrator/pipeline/load.hpp"
#include "orchestrator/worker/measure/bench.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <map>

namespace temper::orchestrator {
namespace {

Status measure_to_file(const MeasureArguments& arguments) {
  if (arguments.parent != 0)
    TEMPER_TRY_STATUS(actors::die_with_parent(arguments.parent));
  const std::map<std::string, Status (*)(Bench&)> parts{{"rollout", measure_rollout},
                                                        {"trainer", measure_trainer},
                                                        {"reference", measure_reference},
                                                        {"beside", measure_beside},
                                                        {"rest", measure_rest}};
  const auto part = parts.find(arguments.part);
  if (part == parts.end())
    return invalid_input(fmt::format(
        "--part: expected rollout, trainer, reference, beside or rest, found {}", arguments.part));
  TEMPER_TRY(const PipelineConfig config, load_config(arguments.config));
  TEMPER_TRY(Bench bench, Bench::make(config, arguments.weights, arguments.threads));
  TEMPER_TRY_STATUS(part->second(bench));
  return write_file_atomically(arguments.out, encode(bench.found()));
}

}  // namespace

int run_measure(const MeasureArguments& arguments) {
  const Status status = measure_to_file(arguments);
  if (!status)
    fmt::print(stderr, "{}\n", status.error().context);
  return status ? 0 : 1;
}

}  // namespace temper::orchestrator
