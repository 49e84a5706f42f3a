#include "orchestrator/run/live/scale_control.hpp"

#include "core/yaml.hpp"
#include "orchestrator/pipeline/changes.hpp"
#include "orchestrator/pipeline/load.hpp"
#include "orchestrator/pipeline/placement.hpp"
#include "orchestrator/run/run_dir.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace temper::orchestrator {
namespace {

constexpr Duration kBetweenLooks = std::chrono::seconds(1);

}  // namespace

ScaleControl::ScaleControl(const LiveOptions& options,
                           RunCore& core,
                           LiveWorkers& workers,
                           WorkerClocks& clocks,
                           const Log& log)
    : options_(options),
      core_(core),
      workers_(workers),
      clocks_(clocks),
      log_(log),
      config_(options.pipeline.config) {}

void ScaleControl::look(Time now) {
  const bool has_fleet = core_.state().fleet.size() > 0;
  if (!has_fleet || now - looked_ < kBetweenLooks)
    return;
  looked_ = now;
  const auto request = read_request(options_.run_dir);
  if (!request)
    return;
  ScaleAnswer answer;
  if (*request)
    answer.id = (*request)->id;
  const auto changes =
      *request ? scale(**request) : Result<std::vector<SettingChange>>(request->error());
  if (changes) {
    answer.done = changes_text(*changes);
  } else {
    answer.outcome = ScaleOutcome::Refused;
    answer.refused = changes.error().context;
    log_.warning("scale request refused", {{"why", answer.refused}});
  }
  if (Status answered = answer_request(options_.run_dir, answer); !answered) {
    log_.error("scale requests are no longer read", {{"why", answered.error().context}});
    looked_ = Time::max();
  }
}

/// The settings of this run with the numbers of the request. Error: no run may have them.
Result<PipelineConfig> ScaleControl::scaled_config(const ScaleRequest& request) const {
  PipelineConfig wanted = config_;
  const auto& teachers = wanted.reference.teachers;
  if (request.reference && std::ranges::any_of(teachers, [](const auto& teacher) {
        return teacher.second.replicas.has_value();
      })) {
    return invalid_input(
        "the teachers of this run have their own numbers of actors "
        "(reference.teachers.*.replicas); "
        "stop the run, and resume it with other ones: --resume");
  }
  wanted.rollout.replicas = request.rollout.value_or(wanted.rollout.replicas);
  wanted.reference.replicas = request.reference.value_or(wanted.reference.replicas);
  wanted.reward.replicas = request.reward.value_or(wanted.reward.replicas);
  const LoadedConfig read("config.yaml", to_yaml(wanted), {});
  if (!read.issues().empty()) {
    const ConfigIssue& first = read.issues().front();
    return invalid_input(fmt::format("{}: {}", first.key, first.message));
  }
  return wanted;
}

/// Returns the changes. Error: the run cannot be scaled so, and nothing was changed.
Result<std::vector<SettingChange>> ScaleControl::scale(const ScaleRequest& request) {
  if (core_.stop_requests() > 0 || core_.state().finished)
    return invalid_input("the run is ending");
  TEMPER_TRY(PipelineConfig wanted, scaled_config(request));
  auto changes = changed_settings(config_, wanted);
  TEMPER_TRY_STATUS(check_changes(changes));
  if (changes.empty())
    return changes;
  if (std::ranges::any_of(core_.config().actors, &ActorSpec::takes_turns)) {
    return invalid_input(
        fmt::format("the roles of this run time-share its cards (placement.mode: {}), and the "
                    "memory is divided "
                    "among its actors; stop the run, and resume it with the new number: --resume",
                    core_.config().placement()));
  }
  const ResolvedPipeline pipeline = resolve_cards(wanted);
  if (options_.provide)
    TEMPER_TRY_STATUS(options_.provide(pipeline));
  // Written ahead of the log: a resume puts back the settings of a change that was not recorded.
  TEMPER_TRY_STATUS(RunDir(options_.run_dir).replace_config(to_yaml(wanted)));
  config_ = std::move(wanted);
  change_actors(pipeline.slots);
  for (const SettingChange& c : changes)
    log_.info("scaling", {{"key", c.key}, {"from", c.from}, {"to", c.to}});
  core_.post(event::Scaled{core_.config().actors, changes});
  return changes;
}

void ScaleControl::change_actors(const std::vector<ActorSpec>& wanted) {
  const std::vector<ActorSpec> before = core_.config().actors;
  std::vector<ActorSpec> actors = actors_from_now(before, wanted);
  for (std::uint32_t i = 0; i < before.size(); ++i) {
    // A worker that exists has been started with its cards.
    const bool exists = core_.state().fleet.state(ActorId(i)).ready() || !before[i].away;
    const bool away = actors[i].away;
    if (exists)
      actors[i] = before[i];
    actors[i].away = away;
  }
  core_.set_actors(std::move(actors));
  for (auto i = static_cast<std::uint32_t>(before.size()); i < core_.config().actors.size(); ++i) {
    const ActorSpec& actor = core_.actor(ActorId(i));
    clocks_.add();
    workers_.add(ActorId(i), engine_of(config_, actor.role, actor.teacher));
  }
  workers_.actors_changed();
}

}  // namespace temper::orchestrator
