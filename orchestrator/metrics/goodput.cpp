#include "orchestrator/metrics/goodput.hpp"

#include <algorithm>

namespace temper::orchestrator {

using actors::RoleKind;

double TimeLost::goodput() const {
  return wall > Duration{} ? static_cast<double>(useful.count()) / static_cast<double>(wall.count())
                           : 0.0;
}

void Goodput::feed(const Record& record) {
  account(record.time - now_, lost_);
  now_ = record.time;
  if (const auto* actors = actors_in(record.event))
    take_actors(*actors);
  on_event(record);
  for (const Command& command : record.commands)
    on_command(command);
  begun_ = begun_ || all_ready();
  back_ = back_ && !can_work();
  missing_cards_ = 0;
  for (std::size_t i = 0; i < actors_.size(); ++i) {
    if (actors_[i].role == RoleKind::Rollout && !actors_[i].away &&
        !ready_.contains(ActorId(static_cast<std::uint32_t>(i))))
      missing_cards_ += std::ssize(actors_[i].cards);
  }
}

TimeLost Goodput::lost(Time until) const {
  TimeLost all = lost_;
  if (until > now_)
    account(until - now_, all);
  return all;
}

void Goodput::take_actors(const std::vector<ActorSpec>& actors) {
  actors_ = actors;
  rollout_cards_ = 0;
  for (const ActorSpec& actor : actors_) {
    if (actor.role == RoleKind::Rollout && !actor.away)
      rollout_cards_ += std::ssize(actor.cards);
  }
}

bool Goodput::all_ready() const {
  for (std::uint32_t i = 0; i < actors_.size(); ++i) {
    if (!actors_[i].away && !ready_.contains(ActorId(i)))
      return false;
  }
  return true;
}

/// Adds `d` to the current state of the run.
void Goodput::account(Duration d, TimeLost& to) const {
  to.wall += d;
  if (!begun_) {
    to.start += d;
  } else if (back_) {
    to.down += d;
  } else if (saving_) {
    to.checkpoint += d;
  } else {
    const Duration missing = missing_part(d);
    to.missing += missing;
    to.useful += d - missing;
  }
}

Duration Goodput::missing_part(Duration d) const {
  if (missing_cards_ == 0 || rollout_cards_ == 0)
    return {};
  const double share = static_cast<double>(missing_cards_) / static_cast<double>(rollout_cards_);
  const auto ns = static_cast<Duration::rep>(share * static_cast<double>(d.count()));
  return std::clamp(Duration(ns), Duration{}, d);
}

bool Goodput::can_work() const {
  std::set<RoleKind> needed, there;
  for (std::size_t i = 0; i < actors_.size(); ++i) {
    if (actors_[i].role == RoleKind::Reference || actors_[i].away)
      continue;
    needed.insert(actors_[i].role);
    if (ready_.contains(ActorId(static_cast<std::uint32_t>(i))))
      there.insert(actors_[i].role);
  }
  return needed == there;
}

void Goodput::on_event(const Record& record) {
  const Event& e = record.event;
  if (std::holds_alternative<event::Started>(e)) {
    kept_[record.sequence] = {};
  } else if (const auto* resumed = std::get_if<event::Resumed>(&e)) {
    go_back(resumed->sequence);
  } else if (const auto* ready = std::get_if<event::ActorReady>(&e)) {
    ready_.insert(ready->actor);
  } else if (const auto* trained = std::get_if<event::Trained>(&e)) {
    lost_.updates = trained->version.value();
  } else if (const auto* saved = std::get_if<event::CheckpointSaved>(&e)) {
    saving_ = false;
    if (saved->error.empty()) {
      ++lost_.checkpoints;
      kept_[record.sequence] = {lost_.useful, lost_.updates};
      if (kept_.size() > kMostWaysBack + 1)
        kept_.erase(std::next(kept_.begin()));
    }
  }
}

void Goodput::on_command(const Command& command) {
  // An actor that is lost during its start was never available.
  const auto gone = [this](ActorId actor) { lost_.losses += ready_.erase(actor); };
  if (std::holds_alternative<command::SaveCheckpoint>(command))
    saving_ = true;
  else if (const auto* discard = std::get_if<command::Discard>(&command))
    gone(discard->actor);
  else if (const auto* launch = std::get_if<command::Launch>(&command))
    gone(launch->actor);
  else if (const auto* retire = std::get_if<command::Retire>(&command))
    ready_.erase(retire->actor);
}

void Goodput::go_back(std::uint64_t sequence) {
  const auto it = kept_.find(sequence);
  const SavedProgress kept = it == kept_.end() ? SavedProgress{} : it->second;
  lost_.again += lost_.useful - kept.useful;
  lost_.useful = kept.useful;
  lost_.updates = kept.updates;
  ++lost_.rollbacks;
  kept_.erase(kept_.upper_bound(sequence), kept_.end());
  ready_.clear();
  saving_ = false;
  back_ = true;
}

}  // namespace temper::orchestrator
