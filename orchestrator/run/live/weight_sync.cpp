#include "orchestrator/run/live/weight_sync.hpp"

#include "actors/protocol/catalog.hpp"

#include <fmt/format.h>

#include <utility>

namespace temper::orchestrator {

WeightSync::WeightSync(
    RunCore& core, ActorLinks& links, WeightsBy by, std::filesystem::path folder, const Log& log)
    : core_(core), links_(links), by_(by), folder_(std::move(folder)), log_(log) {}

// --- To the engines

void WeightSync::execute(const command::StageWeights& c) {
  const actors::WeightsHandle* handle = weights_.handle(c.version);
  if (handle == nullptr) {
    return core_.post(event::WeightsStaged{c.actor, c.version, "the trainer has not published it"});
  }
  const auto stage = stage_message(c, *handle);
  if (!stage)
    return;
  links_.send(c.actor, *stage);
  if (stage->sources.empty() && stage->weights.path.empty())
    images_.push_back(c);  // otherwise the engine asks for what it needs
}

/// None: the weights cannot be had that way, and the run ends.
std::optional<actors::StageWeights> WeightSync::stage_message(const command::StageWeights& c,
                                                              const actors::WeightsHandle& handle) {
  actors::StageWeights stage{handle};
  if (!core_.actor(c.actor).attached || weights_.image(c.version) == nullptr)
    return stage;
  if (by_ == WeightsBy::Folder) {
    auto file = weights_.file(c.version, folder_);
    if (!file) {
      core_.fail("weights for the engines: " + file.error().context);
      return std::nullopt;
    }
    stage.weights.path = std::filesystem::absolute(*file).string();
  } else if (by_ == WeightsBy::Relay && handle.bytes > actors::kChunk) {
    if (auto plan = relays_.plan(c.actor, c.version)) {
      tell_feeders(plan->feeds);
      stage.sources = std::move(plan->sources);
    }
  }
  return stage;
}

void WeightSync::execute(const command::CommitWeights& c) {
  links_.send(c.actor, actors::CommitWeights{c.version});
}

void WeightSync::send_images() {
  for (const command::StageWeights& c : std::exchange(images_, {})) {
    for (actors::OutgoingMessage& chunk : weights_.chunks(c.version))
      links_.send_message(c.actor, std::move(chunk));
  }
}

void WeightSync::tell_feeders(const std::vector<RelayOrder::Feed>& feeds) {
  for (const RelayOrder::Feed& feed : feeds)
    links_.send(feed.feeder, actors::FeedWeights{feed.key, feed.admitted});
}

// --- From the trainer, and from engines

Status WeightSync::announce(const actors::WeightsHandle& handle, Event announcement) {
  TEMPER_TRY_STATUS(core_.validate(announcement));
  if (handle.bytes < Bytes(0))
    return invalid_input(fmt::format("weights of {} bytes", handle.bytes.count()));
  TEMPER_TRY(auto whole, weights_.announce(handle, std::move(announcement)));
  if (whole)
    core_.post(*std::move(whole));
  return {};
}

Status WeightSync::add(const actors::WeightsChunk& chunk) {
  TEMPER_TRY(auto whole, weights_.add(chunk));
  if (whole)
    core_.post(*std::move(whole));
  return {};
}

Status WeightSync::fetch(ActorId actor, const actors::FetchWeights& request) {
  const ActorState& state = core_.state().fleet.state(actor);
  const auto staging = state.staged ? std::nullopt : state.staging;
  if (staging == request.version && weights_.handle(request.version) == nullptr) {
    core_.post(event::WeightsStaged{actor, request.version, "the version is kept no more"});
    return {};
  }
  TEMPER_TRY(auto rest, weights_.rest(request, staging));
  log_.warning("an engine asks for weights that no other sends",
               {{"actor", core_.actor(actor).name},
                {"version", request.version},
                {"from_byte", request.offset}});
  for (actors::OutgoingMessage& message : rest)
    links_.send_message(actor, std::move(message));
  return {};
}

void WeightSync::forget() {
  weights_.clear();
  relays_.forget_versions();
}

}  // namespace temper::orchestrator
