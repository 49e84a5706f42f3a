#include "orchestrator/scheduler/sharing/role_switch.hpp"

#include <algorithm>
#include <utility>

namespace temper::orchestrator {
namespace {

template <class P>
bool every(const Fleet& fleet, const std::vector<ActorId>& actors, P&& holds) {
  return std::all_of(actors.begin(), actors.end(), [&](ActorId a) {
    return !fleet.state(a).ready() || holds(fleet.state(a));
  });
}

template <class P>
bool every_reference(const Fleet& fleet, P&& holds) {
  return every(fleet, fleet.turning_references(), std::forward<P>(holds));
}

}  // namespace

void RoleSwitch::request_training(Scoring scoring, std::vector<ActorId> engines) {
  std::erase_if(engines, [this](ActorId a) { return has_left(a); });
  const bool more = phase_ == SwitchPhase::Train && !engines.empty();
  if (phase_ != SwitchPhase::Rollout && !more)
    return;
  phase_ = SwitchPhase::CutRoute;
  scoring_ = more ? Scoring::None : scoring;
  first_new_ = leaving_.size();
  leaving_.insert(leaving_.end(), engines.begin(), engines.end());
}

void RoleSwitch::request_rollout() {
  if (phase_ != SwitchPhase::Train)
    return;
  phase_ = SwitchPhase::DrainTrain;
  scoring_ = Scoring::None;
}

void RoleSwitch::request_scoring() {
  if (phase_ != SwitchPhase::Train)
    return;
  phase_ = SwitchPhase::DrainTrain;
  scoring_ = Scoring::Needed;
}

void RoleSwitch::scored() {
  if (phase_ == SwitchPhase::Score)
    scoring_ = Scoring::None;
}

void RoleSwitch::onload_refused(std::string why) {
  refused_ = true;
  refusal_ = std::move(why);
  ++refusals_;
}

bool RoleSwitch::step(const Fleet& fleet, PolicyVersion published) {
  const ActorState& trainer = fleet.state(fleet.trainer());
  const auto go = [this](SwitchPhase to) {
    phase_ = to;
    return true;
  };
  const auto every_engine = [&](auto&& holds) { return every(fleet, leaving_, holds); };
  const auto engines_idle = [&] {
    return every_engine([](const ActorState& s) { return !s.switching; });
  };
  const bool scores = scoring_ == Scoring::Needed;
  switch (phase_) {
    case SwitchPhase::Separate:
    case SwitchPhase::Train:
    case SwitchPhase::Rollout:
      return false;
    case SwitchPhase::DrainTrain:
      return trainer.ready() && go(SwitchPhase::OffloadOptimizer);
    case SwitchPhase::OffloadOptimizer:
      return !trainer.switching && go(scores ? SwitchPhase::OnloadReference : SwitchPhase::Reshard);
    case SwitchPhase::Reshard:
      return every_engine([&](const ActorState& s) {
               return s.version == published || (s.staged && s.staging == published);
             }) &&
             go(SwitchPhase::Bind);
    case SwitchPhase::Bind:
      return every_engine([&](const ActorState& s) { return s.version == published; }) &&
             go(SwitchPhase::KvAlloc);
    case SwitchPhase::KvAlloc:
      return engines_idle() &&
             every_engine([](const ActorState& s) { return s.has_kv || !s.version; }) &&
             go(SwitchPhase::Rollout) && nobody_has_left();
    case SwitchPhase::CutRoute:
      // An engine that is still being given weights or memory finishes that first.
      return engines_idle() && every_engine([](const ActorState& s) { return !s.staging; }) &&
             go(SwitchPhase::Interrupt);
    case SwitchPhase::Interrupt:
      return engines_idle() && go(SwitchPhase::FreeKv);
    case SwitchPhase::FreeKv:
      return engines_idle() && go(SwitchPhase::OffloadWeights);
    case SwitchPhase::OffloadWeights:
      return engines_idle() && go(scores ? SwitchPhase::OnloadReference : SwitchPhase::Onload);
    case SwitchPhase::OnloadReference:
      return every_reference(fleet,
                             [](const ActorState& s) { return s.onboard && !s.switching; }) &&
             go(SwitchPhase::Score);
    case SwitchPhase::Score:
      return !scores && go(SwitchPhase::OffloadReference);
    case SwitchPhase::OffloadReference:
      return every_reference(fleet, [](const ActorState& s) { return !s.switching; }) &&
             go(SwitchPhase::Onload);
    case SwitchPhase::Onload:
      if (trainer.switching)
        return false;
      if (std::exchange(refused_, false))
        return go(SwitchPhase::OffloadOptimizer);
      refusals_ = 0;
      return go(SwitchPhase::Train);
  }
  return false;
}

std::optional<actors::SwitchAction> RoleSwitch::entry_action() const {
  switch (phase_) {
    case SwitchPhase::OffloadOptimizer:
      return actors::SwitchAction::OffloadOptimizer;
    case SwitchPhase::Interrupt:
      return actors::SwitchAction::Interrupt;
    case SwitchPhase::FreeKv:
      return actors::SwitchAction::FreeKv;
    case SwitchPhase::OffloadWeights:
      return actors::SwitchAction::FreeWeights;
    case SwitchPhase::OffloadReference:
      return actors::SwitchAction::OffloadReference;
    case SwitchPhase::Onload:
      return actors::SwitchAction::OnloadOptimizer;
    default:
      return std::nullopt;  // KvAlloc, OnloadReference: per actor, by the scheduler, also for those
                            // that join late
  }
}

}  // namespace temper::orchestrator
