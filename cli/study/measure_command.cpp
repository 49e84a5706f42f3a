#include "cli/study/measure_command.hpp"

#include "actors/runtime/process.hpp"
#include "cli/command/exit_code.hpp"
#include "core/clock.hpp"
#include "core/files.hpp"
#include "core/json.hpp"
#include "core/msgpack.hpp"
#include "core/progress_line.hpp"
#include "core/temporary_folder.hpp"
#include "core/yaml.hpp"
#include "orchestrator/pipeline/load.hpp"
#include "orchestrator/run/processes/run_program.hpp"
#include "orchestrator/start/start_run.hpp"
#include "study/machine/fit.hpp"
#include "study/machine/machine_run.hpp"
#include "study/machine/other_work.hpp"
#include "study/machine/process_runs.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>

namespace temper::cli {
namespace {

namespace fs = std::filesystem;

std::string cpu_name() {
  const auto info = read_file("/proc/cpuinfo");
  if (!info)
    return "unknown";
  const auto at = info->find("model name");
  const auto begin = at == std::string::npos ? at : info->find(": ", at);
  if (begin == std::string::npos)
    return "unknown";
  return info->substr(begin + 2, info->find('\n', begin) - begin - 2);
}

/// A part of the measurement that runs in its own process, as in a run.
struct Part {
  const char* name;
  enum class Threads { One, AlsoAll } threads;
};
constexpr Part kParts[] = {{"rollout", Part::Threads::AlsoAll},
                           {"trainer", Part::Threads::AlsoAll},
                           {"reference", Part::Threads::AlsoAll},
                           {"beside", Part::Threads::One},
                           {"rest", Part::Threads::One}};

/// The progress text of a measurement, which is repeated if other programs disturb it.
std::string tries_text(const std::string& stage, int tries) {
  return tries == 1
             ? stage
             : fmt::format(
                   "{}, try {} of {} (other programs were busy)", stage, tries, study::kTries);
}

/// The process that measures a part with this number of threads and writes `samples`.
orchestrator::ChildSpec measuring_program(const Part& part,
                                          std::size_t threads,
                                          const orchestrator::RunDir& run_dir,
                                          const fs::path& samples) {
  orchestrator::ChildSpec spec;
  spec.name = "measure";
  spec.command = {orchestrator::worker_program().string(),
                  "measure",
                  "--part",
                  part.name,
                  "--threads",
                  std::to_string(threads),
                  "--config",
                  run_dir.file("config.yaml").string(),
                  "--weights",
                  run_dir.base().string(),
                  "--out",
                  samples.string(),
                  "--parent",
                  std::to_string(::getpid())};
  spec.environment = {{"OMP_WAIT_POLICY", "passive"}};
  spec.log = run_dir.log_of("measure");
  return spec;
}

/// Measures the engines, each in its own process. Raises `others` to the largest share of the cores
/// that other programs used meanwhile.
Result<orchestrator::Timings> measure_engines(orchestrator::PipelineConfig config,
                                              const fs::path& folder,
                                              ProgressLine& progress,
                                              double& others) {
  config.run_dir = (folder / "engines").string();
  TEMPER_TRY(auto pipeline, orchestrator::resolve(std::move(config)));
  const fs::path engines = pipeline.config.run_dir;
  orchestrator::RunPlan plan{std::move(pipeline),
                             engines,
                             orchestrator::DriverKind::Auto,
                             orchestrator::RunPlan::From::Start};
  TEMPER_TRY(const orchestrator::RunLock lock,
             orchestrator::prepare_run(plan, orchestrator::PretrainLine::Shown));
  const orchestrator::RunDir run_dir(plan.run_dir);
  const std::size_t cores = actors::usable_cores().size();
  orchestrator::Timings all;
  for (const Part& part : kParts) {
    for (const std::size_t threads : {std::size_t{1}, cores}) {
      if (threads > 1 && (part.threads == Part::Threads::One || cores == 1))
        continue;
      const fs::path samples = folder / fmt::format("{}-{}.msgpack", part.name, threads);
      const orchestrator::ChildSpec spec = measuring_program(part, threads, run_dir, samples);
      orchestrator::Timings tried, found;
      const std::string stage =
          fmt::format("measuring {} with {} thread{}", part.name, threads, threads == 1 ? "" : "s");
      int tries = 0;
      const auto once = [&]() -> Status {
        ++tries;
        TEMPER_TRY_STATUS(
            orchestrator::run_program(spec, "measuring the engines", [&](std::string_view line) {
              progress.show(tries_text(stage, tries), line);
            }));
        TEMPER_TRY(const std::string bytes, read_file(samples));
        TEMPER_TRY(tried, decode<orchestrator::Timings>(bytes));
        return {};
      };
      TEMPER_TRY(const double share,
                 study::measure_quietly(
                     once, [&] { found = std::move(tried); }, study::core_accounts));
      others = std::max(others, share);
      std::ranges::move(found.timings, std::back_inserter(all.timings));
      if (!found.lengths.empty())
        all.lengths = std::move(found.lengths);
      if (cores == 1)
        break;
    }
  }
  return all;
}

Result<study::MachineModel> measure(const MeasureOptions& options, std::ostream& err) {
  TEMPER_TRY(const orchestrator::PipelineConfig config,
             orchestrator::load_config(options.config, options.sets));
  if (Status status = study::check_of_this_machine(config); !status)
    return std::move(status).error().within(options.config);
  const auto broken = orchestrator::rules_of_this_machine(config);
  if (!broken.empty()) {
    return invalid_input(
        fmt::format("{}: {}", broken.front().keys.front(), broken.front().message));
  }
  study::MachineModel calibration;
  calibration.measured = calendar_stamp();
  calibration.cpu = cpu_name();
  calibration.cores = static_cast<std::int32_t>(actors::usable_cores().size());
  calibration.config = config.name;
  calibration.model = config.model;
  TEMPER_TRY(const TemporaryFolder scratch, TemporaryFolder::create("temper-calibrate-"));
  const RealClock clock;
  ProgressLine progress(err, progress_of_stderr(), clock, "temper measure");
  TEMPER_TRY(const orchestrator::Timings samples,
             measure_engines(config, scratch.path(), progress, calibration.others));
  TEMPER_TRY_STATUS(study::fit_engines(samples, calibration));
  study::MachineModel tried, kept;
  int tries = 0;
  const auto once = [&] {
    tried = calibration;
    ++tries;
    int runs = 0;
    const auto run = [&](const orchestrator::PipelineConfig& of,
                         const orchestrator::OnUpdate& on_update) {
      ++runs;
      const auto show = [&](std::uint64_t steps) {
        progress.show(tries_text("measuring messages and processes", tries),
                      fmt::format("run {}, step {} of {}", runs, steps, of.steps));
      };
      show(0);
      return orchestrator::start_run_quietly(
          of, orchestrator::ExistingRun::Refuse, [&](const orchestrator::RunMetrics& metrics) {
            show(metrics.updates().size());
            if (on_update)
              on_update(metrics);
          });
    };
    return study::measure_processes(
        config, run, scratch.path() / fmt::format("processes-{}", tries), tried);
  };
  TEMPER_TRY(const double share,
             study::measure_quietly(
                 once, [&] { kept = tried; }, study::core_accounts));
  calibration = std::move(kept);
  calibration.others = std::max(calibration.others, share);
  return calibration;
}

void print(std::ostream& out, const study::MachineModel& c) {
  out << fmt::format("{}, {} cores, {}\n", c.cpu, c.cores, c.measured);
  out << fmt::format(
      "{:<42} {:>8} {:>8} {:>8}  {}\n", "constants", "samples", "spread", "error", "how");
  for (const study::MachineFit& fit : c.fits) {
    out << fmt::format("{:<42} {:>8} {:>6.1f} % {:>6.1f} %  {}\n",
                       fit.constants,
                       fit.samples,
                       100 * fit.spread,
                       100 * fit.error,
                       fit.how);
  }
}

}  // namespace

int run_measure(const MeasureOptions& options, std::ostream& out, std::ostream& err) {
  orchestrator::ignore_write_signals();
  const auto measured = measure(options, err);
  Status status = measured ? Status() : Status(measured.error());
  if (status) {
    std::string command = "temper measure " + options.config;
    for (const std::string& set : options.sets)
      command += " --set " + set;
    status = study::save_machine_model(*measured, options.out, command);
  }
  if (!status)
    return fail(status.error(), err, "temper measure");
  if (options.json) {
    out << to_json(*measured, JsonStyle::Pretty) << "\n";
  } else {
    print(out, *measured);
    out << study::busy_note(*measured) << fmt::format("written: {}\n", options.out);
  }
  return 0;
}

Handler measure_command(Flags& flags) {
  const auto options = std::make_shared<MeasureOptions>();
  flags.pipeline(options->config, options->sets);
  flags.text("--out", options->out, "YAML file for the measurements");
  flags.json(options->json);
  return [options] { return run_measure(*options, std::cout, std::cerr); };
}

}  // namespace temper::cli
