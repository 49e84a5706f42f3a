#include "orchestrator/worker/laboratory.hpp"

#include "orchestrator/worker/measure/measure_command.hpp"

#include <CLI/CLI.hpp>

#include <memory>

namespace temper::orchestrator {

std::vector<WorkerCommand> declare_laboratory(CLI::App& app) {
  auto measure = std::make_shared<MeasureArguments>();
  auto* command = app.add_subcommand("measure", "Time the engines of a pipeline");
  command
      ->add_option(
          "--part", measure->part, "What to measure: rollout, trainer, reference, beside or rest")
      ->required();
  command->add_option("--threads", measure->threads, "Compute threads");
  command->add_option("--config", measure->config, "Resolved pipeline YAML")->required();
  command->add_option("--weights", measure->weights, "Base checkpoint")->required();
  command->add_option("--out", measure->out, "File to write")->required();
  command->add_option("--parent", measure->parent, "Exit when this process exits (pid)");
  return {{command, [measure] { return run_measure(*measure); }}};
}

}  // namespace temper::orchestrator
