// Scaling a running job (`temper scale`, docs/resume.md).
#include "actors/protocol/lifecycle.hpp"
#include "core/yaml.hpp"
#include "orchestrator/pipeline/changes.hpp"
#include "orchestrator/pipeline/load.hpp"
#include "orchestrator/pipeline/placement.hpp"
#include "orchestrator/run/live/live_driver.hpp"
#include "orchestrator/run/scale_request.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace temper::orchestrator {
namespace {

constexpr Duration kBetweenLooks = std::chrono::seconds(1);
/// Of a worker that was told to end.
constexpr Duration kEndGrace = std::chrono::seconds(10);

}  // namespace

/// Looks for a request every second, once there is a fleet that can be scaled.
void LiveDriver::look_for_requests(Time now) {
  if (scheduler_.fleet().size() == 0 || now - looked_for_requests_ < kBetweenLooks)
    return;
  looked_for_requests_ = now;
  const auto request = read_request(run_dir_.root());
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
    log_.warning("another number of actors is refused", {{"why", answer.refused}});
  }
  if (Status answered = answer_request(run_dir_.root(), answer); !answered) {
    log_.error("requests to scale the run are no longer read", {{"why", answered.error().context}});
    looked_for_requests_ = Time::max();
  }
}

/// The settings of this run with the numbers of the request. Error: no run may have them.
Result<PipelineConfig> LiveDriver::scaled_config(const ScaleRequest& request) const {
  PipelineConfig wanted = config_;
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
Result<std::vector<SettingChange>> LiveDriver::scale(const ScaleRequest& request) {
  if (signals_ > 0 || scheduler_.finished())
    return invalid_input("the run is ending");
  TEMPER_TRY(PipelineConfig wanted, scaled_config(request));
  auto changes = changed_settings(config_, wanted);
  TEMPER_TRY_STATUS(check_changes(changes));
  if (changes.empty())
    return changes;
  if (std::ranges::any_of(scheduler_config_.actors, &ActorSpec::takes_turns)) {
    return invalid_input(fmt::format(
        "the roles of this run take turns on its cards (placement.mode: {}), and their memory is "
        "divided among those that there are; stop it and go on with another number: --resume",
        scheduler_config_.placement()));
  }
  const ResolvedPipeline pipeline = resolve_cards(wanted);
  if (options_.provide)
    TEMPER_TRY_STATUS(options_.provide(pipeline));
  // Written ahead of the log: a resume puts back the settings of a change that was not recorded.
  TEMPER_TRY_STATUS(run_dir_.replace_config(to_yaml(wanted)));
  config_ = std::move(wanted);
  take_actors(pipeline.slots);
  for (const SettingChange& c : changes)
    log_.info("another number of actors", {{"key", c.key}, {"from", c.from}, {"to", c.to}});
  post(event::Scaled{scheduler_config_.actors, changes});
  return changes;
}

void LiveDriver::take_actors(const std::vector<ActorSpec>& wanted) {
  std::vector<ActorSpec>& actors = scheduler_config_.actors;
  const std::vector<ActorSpec> before = actors;
  actors = actors_from_now(before, wanted);
  for (std::uint32_t i = 0; i < actors.size(); ++i) {
    if (i < before.size()) {
      // A worker that is there was begun with its cards.
      const bool is_there = scheduler_.fleet().state(ActorId(i)).ready() || !before[i].away;
      const bool away = actors[i].away;
      if (is_there)
        actors[i] = before[i];
      actors[i].away = away;
      continue;
    }
    connections_.add(actors[i].name);
    clocks_.emplace_back();
    launched_->add(actors[i].name, engine_of(config_, actors[i].role));
    if (actors[i].attached)
      connections_.attach(ActorId(i));
  }
  if (attached_)
    attached_->places_changed();
}

void LiveDriver::execute(const command::Retire& c) {
  log_.info("actor taken away", {{"actor", scheduler_config_.actors[c.actor.value()].name}});
  leave_relays(c.actor);
  if (connections_.peer_of(c.actor) == nullptr || !scheduler_.fleet().state(c.actor).ready())
    return source_of(c.actor).dismiss(c.actor);
  send(c.actor, actors::Stop{});
  ending_[c.actor] = clock_->now() + kEndGrace;
}

/// Workers that were told to end and have not.
void LiveDriver::end_overdue(Time now) {
  std::vector<ActorId> overdue;
  for (const auto& [actor, until] : ending_) {
    if (until <= now)
      overdue.push_back(actor);
  }
  for (const ActorId actor : overdue) {
    ending_.erase(actor);
    source_of(actor).dismiss(actor);
    queue_.push_back(event::ActorDown{actor, "did not end in time"});
  }
  process_events();
}

}  // namespace temper::orchestrator
