#include "study/sweep/sweep_runs.hpp"

#include "core/files.hpp"
#include "core/yaml.hpp"
#include "orchestrator/pipeline/difference.hpp"
#include "orchestrator/pipeline/load.hpp"
#include "orchestrator/pipeline/resolve.hpp"
#include "orchestrator/run/run_dir.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace temper::study {
namespace {

namespace fs = std::filesystem;

std::string folder_name(const std::string& setting, std::uint64_t seed) {
  std::string name = fmt::format("{} seed{}", setting, seed);
  for (char& c : name) {
    if (c == ' ')
      c = '-';
    else if (std::isalnum(static_cast<unsigned char>(c)) == 0 &&
             std::string("-_.=+").find(c) == std::string::npos)
      c = '_';
  }
  return name;
}

/// Checks that the folder holds a run of this configuration, ignoring run_dir.
Status check_same(const fs::path& folder, const orchestrator::PipelineConfig& config) {
  const fs::path file = folder / "config.yaml";
  auto stored = orchestrator::load_config(file);
  if (!stored)
    return std::move(stored).error().within("--resume: " + folder.string());
  stored->run_dir = config.run_dir;
  const std::string then = to_yaml(*stored), now = to_yaml(config);
  if (then == now)
    return {};
  const auto [was, is] = orchestrator::first_difference(then, now);
  return invalid_input(
      fmt::format("--resume: {} has `{}`, but this sweep has `{}`; name another --out",
                  file.string(),
                  was,
                  is));
}

/// Protects existing runs from being overwritten or mistaken for this one.
Status check_folder(const SweepOptions& options, const orchestrator::PipelineConfig& config) {
  const fs::path folder = config.run_dir;
  if (!fs::exists(folder))
    return {};
  if (options.folders == SweepOptions::Folders::New) {
    return invalid_input(
        fmt::format("{} already exists; resume the sweep with --resume, or name another --out",
                    folder.string()));
  }
  return fs::exists(folder / "config.yaml") ? check_same(folder, config) : Status();
}

/// Error: it is in use.
Status remove_run(const fs::path& folder) {
  if (!fs::exists(folder))
    return {};
  TEMPER_TRY(const orchestrator::RunLock lock, orchestrator::RunDir(folder).lock());
  std::error_code error;
  fs::remove_all(folder, error);
  return error ? Status(io_error("cannot empty " + folder.string(), error.value())) : Status();
}

class RealRuns {
 public:
  RealRuns(const SweepOptions& options, std::vector<std::string> names, std::size_t of)
      : options_(options), names_(std::move(names)), of_(of) {}

  Result<Figures> figures_of(const SweepJob& job) {
    ++number_;
    TEMPER_TRY(const orchestrator::ResolvedPipeline pipeline, orchestrator::resolve(job.config));
    const fs::path log = fs::path(job.config.run_dir) / "events.log";
    if (fs::exists(log)) {
      auto whole = figures_of_log(log, pipeline);
      if (whole) {
        say_done(job, *whole, ", from an earlier sweep");
        return whole;
      }
    }
    auto made = make(job, pipeline);
    if (made)
      say_done(job, *made, "");
    else if (!stopped_)
      say(SweepOptions::Line::Lasting, job, "failed: " + made.error().context);
    return made;
  }
  bool stopped() const { return stopped_; }

 private:
  Result<Figures> make(const SweepJob& job, const orchestrator::ResolvedPipeline& pipeline) {
    if (job.config.hardware == orchestrator::HardwareKind::Simulated)  // A twin.
      TEMPER_TRY_STATUS(remove_run(job.config.run_dir));
    say(SweepOptions::Line::Passing, job, "started");
    TEMPER_TRY(const orchestrator::RunEnd finish,
               options_.start_run(job.config, [&](const orchestrator::RunMetrics& metrics) {
                 if (metrics.updates().empty())
                   return;
                 const orchestrator::Update& update = metrics.updates().back();
                 say(SweepOptions::Line::Passing,
                     job,
                     fmt::format("update {} of {}, reward {:.3f}",
                                 update.version,
                                 job.config.steps,
                                 update.metrics.reward_mean));
               }));
    stopped_ = finish.stopped;
    if (!finish.ok)
      return Error{ErrorCode::Internal, finish.reason};
    return figures_of_log(fs::path(job.config.run_dir) / "events.log", pipeline);
  }

  void say(SweepOptions::Line line, const SweepJob& job, const std::string& what) const {
    if (options_.on_line) {
      options_.on_line(line,
                       fmt::format("{} of {}  {} seed {}: {}",
                                   number_,
                                   of_,
                                   setting_text(names_, job.values),
                                   job.run.seed,
                                   what));
    }
  }

  void say_done(const SweepJob& job, const Figures& figures, const char* how) const {
    std::string reward;
    if (job.config.policy == actors::PolicyKind::Torch) {
      reward = fmt::format(", final reward {:.3f}",
                           learning_figures(figures.rewards, options_.target_reward).final_reward);
    }
    say(SweepOptions::Line::Lasting,
        job,
        fmt::format("{} updates in {:.1f} s{}{}",
                    figures.whole.updates,
                    figures.whole.seconds,
                    reward,
                    how));
  }

  const SweepOptions& options_;
  const std::vector<std::string> names_;
  const std::size_t of_;
  std::size_t number_ = 0;
  bool stopped_ = false;
};

}  // namespace

Result<Sweep::End> make_real_runs(const SweepOptions& options,
                                  std::vector<SweepJob>& jobs,
                                  std::span<const std::size_t> places,
                                  std::vector<std::optional<Result<Figures>>>& figures) {
  const std::vector<std::string> names = short_names(keys_of(options.over, options.any));
  std::set<std::string> folders;
  for (const std::size_t place : places) {
    SweepJob& job = jobs[place];
    std::string name = folder_name(setting_text(names, job.values), job.run.seed);
    while (!folders.insert(name).second)
      name += '_';
    job.config.run_dir = fs::absolute(options.out / "runs" / name).string();
    job.run.folder = job.config.run_dir;
    TEMPER_TRY_STATUS(check_folder(options, job.config));
  }
  RealRuns runs(options, names, places.size());
  for (const std::size_t place : places) {
    auto made = runs.figures_of(jobs[place]);
    if (runs.stopped())
      return Sweep::End::Stopped;
    figures[place] = std::move(made);
  }
  return Sweep::End::Whole;
}

}  // namespace temper::study
