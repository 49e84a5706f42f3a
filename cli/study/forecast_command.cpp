#include "cli/study/forecast_command.hpp"

#include "cli/command/exit_code.hpp"
#include "cli/watch/run_watch.hpp"
#include "core/clock.hpp"
#include "core/files.hpp"
#include "core/json.hpp"
#include "core/parallel.hpp"
#include "orchestrator/pipeline/load.hpp"
#include "orchestrator/start/start_run.hpp"
#include "study/forecast/forecast.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <memory>

namespace temper::cli {
namespace {

Result<study::Forecasts> forecast_and_check(const ForecastOptions& command, std::ostream& err) {
  study::ForecastOptions options;
  TEMPER_TRY(options.config, orchestrator::ConfigFile::read(command.config));
  options.sets = command.sets;
  TEMPER_TRY(options.over, study::parse_axes("--over", command.over));
  auto calibration = study::load_machine_model(command.calibration);
  if (!calibration) {
    TEMPER_TRY(const orchestrator::PipelineConfig config, options.config.load_valid(options.sets));
    if (Status status = study::check_of_this_machine(config); !status)
      return std::move(status).error().within(command.config);  // a calibration would not help
    return std::move(calibration)
        .error()
        .within("this machine has no calibration; create it with `temper measure " +
                command.config + "`");
  }
  options.calibration = *std::move(calibration);
  err << study::busy_note(options.calibration);
  options.simulate.threads = worker_threads(command.threads);
  options.repeats = command.check;
  options.out = command.out;
  if (command.check > 0 && command.out.empty())
    options.out = fmt::format("runs/forecast-{}", calendar_stamp());
  options.start_run = [](const auto& config, const auto& on_update) {
    return start_run_quietly(config, orchestrator::ExistingRun::Refuse, on_update, follow_run);
  };
  options.on_line = [&err](const std::string& line) { err << line << "\n" << std::flush; };
  TEMPER_TRY(study::Forecasts done, study::forecast(options));
  if (!options.out.empty()) {
    TEMPER_TRY_STATUS(make_folder(options.out));
    TEMPER_TRY_STATUS(
        write_file_atomically(options.out / "forecasts.json", to_json(done, JsonStyle::Pretty)));
  }
  return done;
}

}  // namespace

int run_forecast(const ForecastOptions& command, std::ostream& out, std::ostream& err) {
  orchestrator::ignore_write_signals();
  const auto done = forecast_and_check(command, err);
  if (!done)
    return fail(done.error(), err, "temper forecast");
  out << (command.json ? to_json(*done, JsonStyle::Pretty) + "\n" : study::forecasts_text(*done));
  if (done->end == study::Forecasts::End::Stopped)
    return 130;
  const bool all = std::ranges::all_of(
      done->runs, [](const study::ForecastRun& run) { return run.reason.empty(); });
  return all ? kDone : kFound;
}

Handler forecast_command(Flags& flags) {
  const auto options = std::make_shared<ForecastOptions>();
  flags.pipeline(options->config, options->sets);
  flags.text("--calibration", options->calibration, "Calibration file from `temper measure`");
  flags.repeated("--over", options->over, "Values to try: key=v,v or key+key=v/v,v/v (repeatable)");
  flags.number("--check", options->check, "Then run each configuration N times and compare");
  flags.count("--threads", options->threads, "Predictions in parallel (default: one per core)");
  flags.text("--out", options->out, "Folder for the table and the run folders");
  flags.json(options->json);
  return [options] { return run_forecast(*options, std::cout, std::cerr); };
}

}  // namespace temper::cli
