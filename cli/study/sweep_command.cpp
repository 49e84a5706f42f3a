#include "cli/study/sweep_command.hpp"

#include "cli/command/exit_code.hpp"
#include "cli/study/constants_note.hpp"
#include "core/files.hpp"
#include "core/parallel.hpp"
#include "study/simulate/sweep.hpp"

#include <fmt/format.h>

#include <iostream>
#include <memory>

namespace temper::cli {
namespace {

Result<study::SweepOptions> to_options(const SweepOptions& command) {
  study::SweepOptions options;
  options.config = command.config;
  options.sets = command.sets;
  for (const std::string& text : command.over) {
    TEMPER_TRY(study::SweepAxis axis, study::parse_axis("--over", text));
    options.over.push_back(std::move(axis));
  }
  for (const std::string& text : command.any) {
    TEMPER_TRY(study::SweepAxis axis, study::parse_axis("--any", text));
    options.any.push_back(std::move(axis));
  }
  if (command.fit)
    options.layouts = study::SweepOptions::Layouts::Fitted;
  options.steady_updates = command.steps;
  options.simulate.threads = worker_threads(command.threads);
  return options;
}

Result<study::Sweep> sweep(const SweepOptions& command, std::ostream& err) {
  TEMPER_TRY(study::SweepOptions options, to_options(command));
  options.simulate.on_progress = [&](std::size_t done, std::size_t of) {
    if (done * 10 / of != (done - 1) * 10 / of)
      err << fmt::format("{} of {}\n", done, of) << std::flush;
  };
  TEMPER_TRY(study::Sweep done, study::run_sweep(options));
  if (!command.csv.empty())
    TEMPER_TRY_STATUS(write_file_atomically(command.csv, study::sweep_csv(done)));
  if (!command.plot.empty()) {
    TEMPER_TRY(const std::string svg, study::sweep_svg(done, {command.title, command.x_label}));
    TEMPER_TRY_STATUS(write_file_atomically(command.plot, svg));
  }
  return done;
}

}  // namespace

int run_sweep(const SweepOptions& command, std::ostream& out, std::ostream& err) {
  const auto done = sweep(command, err);
  if (!done) {
    err << "temper: " << done.error().context << '\n';
    return exit_code_of(done.error());
  }
  out << study::sweep_text(*done) << constants_note(command.config, command.sets);
  return 0;
}

Handler sweep_command(Flags& flags) {
  const auto options = std::make_shared<SweepOptions>();
  flags.pipeline(options->config, options->sets);
  flags.repeated(
      "--over", options->over, "Values for one row each: key=v,v or key+key=v/v,v/v (repeatable)");
  flags.repeated(
      "--any", options->any, "As --over, but each row shows only the best value (repeatable)");
  flags.flag("--fit", options->fit, "Choose trainer layout, rollout.ep and kv_share for each row");
  flags.number("--steps",
               options->steps,
               "Steady-state steps per run (default: steps of the configuration)");
  flags.number("--threads", options->threads, "Runs in parallel (default: one per core)");
  flags.text("--csv", options->csv, "Write the table as CSV");
  flags.text("--plot", options->plot, "Write an SVG plot of tokens/s and utilization");
  flags.text("--title", options->title, "Title of the plot");
  flags.text("--x-label", options->x_label, "Label of the plot's x axis (default: the first key)");
  return [options] { return run_sweep(*options, std::cout, std::cerr); };
}

}  // namespace temper::cli
