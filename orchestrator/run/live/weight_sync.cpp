#include "orchestrator/run/live/weight_sync.hpp"

#include "actors/protocol/catalog.hpp"

#include <fmt/format.h>

#include <utility>

namespace temper::orchestrator {
namespace {

constexpr const char* kNotKept = "this version is no longer kept; later ones have been published";

}  // namespace

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
  // An engine with sources asks for what it needs.
  if (stage->sources.empty() && stage->weights.path.empty() && stage->weights.fd < 0)
    images_.push_back({c.actor, c.version});
}

/// None: the weights cannot be had that way, and the run ends.
std::optional<actors::StageWeights> WeightSync::stage_message(const command::StageWeights& c,
                                                              const actors::WeightsHandle& handle) {
  actors::StageWeights stage{handle};
  stage.weights.on_request = false;
  if (!core_.actor(c.actor).attached || handle.fd >= 0)
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
  // An engine that gets none posts an event, and this is called again.
  for (const NeededImage& needed : std::exchange(images_, {})) {
    if (!send_image(needed))
      images_.push_back(needed);
  }
}

bool WeightSync::send_image(const NeededImage& needed) {
  if (weights_.handle(needed.version) == nullptr) {
    core_.post(event::WeightsStaged{needed.actor, needed.version, kNotKept});
    return true;
  }
  const auto request = weights_.request(needed.version);
  if (!request) {
    core_.post(event::WeightsStaged{needed.actor, needed.version, request.error().context});
    return true;
  }
  if (*request) {
    log_.info("fetching weights from the trainer",
              {{"version", needed.version}, {"for", core_.actor(needed.actor).name}});
    links_.send(core_.state().fleet.trainer(), **request);
  }
  if (weights_.image(needed.version) == nullptr)
    return false;
  for (actors::OutgoingMessage& chunk : weights_.chunks(needed.version, needed.offset))
    links_.send_message(needed.actor, std::move(chunk));
  return true;
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
  const ActorId trainer = core_.state().fleet.trainer();
  if (handle.on_request && !serves_weights(trainer))
    return invalid_input("weights on request from a trainer that was not told to serve them");
  relays_.begin_with(handle.on_request ? std::optional(trainer) : std::nullopt);
  TEMPER_TRY(auto whole, weights_.announce(handle, std::move(announcement)));
  if (whole)
    core_.post(*std::move(whole));
  return {};
}

Status WeightSync::add(const actors::WeightsChunk& chunk) {
  TEMPER_TRY(auto whole, weights_.add(chunk));
  if (whole)
    core_.post(*std::move(whole));
  send_images();
  return {};
}

Status WeightSync::fetch(ActorId actor, const actors::FetchWeights& request) {
  const ActorState& state = core_.state().fleet.state(actor);
  const auto staging = state.staged ? std::nullopt : state.staging;
  if (staging == request.version && weights_.handle(request.version) == nullptr) {
    core_.post(event::WeightsStaged{actor, request.version, kNotKept});
    return {};
  }
  TEMPER_TRY_STATUS(weights_.check(request, staging));
  log_.warning("an engine asks for weights that no other sends",
               {{"actor", core_.actor(actor).name},
                {"version", request.version},
                {"from_byte", request.offset}});
  images_.push_back({actor, request.version, request.offset});
  send_images();
  return {};
}

bool WeightSync::serves_weights(ActorId actor) const {
  return by_ == WeightsBy::Relay && core_.actor(actor).role == actors::RoleKind::Trainer &&
         relays_.has(actor);
}

void WeightSync::leave_relays(ActorId actor) {
  std::erase_if(images_, [actor](const NeededImage& needed) { return needed.actor == actor; });
  tell_feeders(relays_.leave(actor));
}

void WeightSync::forget() {
  weights_.clear();
  images_.clear();
  relays_.forget_versions();
}

}  // namespace temper::orchestrator
