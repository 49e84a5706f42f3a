#include "orchestrator/metrics/batch_tail.hpp"

#include "orchestrator/scheduler/queue/evaluation_ids.hpp"
#include "orchestrator/scheduler/queue/response_ids.hpp"
#include "orchestrator/scheduler/state/config.hpp"

#include <algorithm>

namespace temper::orchestrator {

void BatchTail::feed(const Record& record) {
  if (const SchedulerConfig* config = config_in(record.event))
    take(*config);
  std::visit([this](const auto& e) { on_event(e); }, record.event);
  for (const Command& command : record.commands)
    std::visit([this](const auto& c) { on_command(c); }, command);
  const bool tail = lacks_groups_ && !resumed_ && !generating_.empty() &&
                    generating_.size() <= most_ && handed_back_.empty();
  if (tail == now())
    return;
  if (tail) {
    since_ = record.time;
    return;
  }
  ended_ += record.time - *since_;
  since_.reset();
}

void BatchTail::take(const SchedulerConfig& config) {
  const auto trainer =
      std::ranges::find(config.actors, actors::RoleKind::Trainer, &ActorSpec::role);
  if (trainer != config.actors.end())
    trainer_ = ActorId(static_cast<std::uint32_t>(trainer - config.actors.begin()));
  per_group_ = ResponseIds(config.responses_per_group).per_group();
  const auto batch = static_cast<std::uint64_t>(config.groups_per_update) * per_group_;
  most_ = std::max<std::size_t>(1, batch / kPart);
}

void BatchTail::take_back(ActorId engine) {
  std::erase_if(generating_, [&](const auto& held) {
    if (held.second.engine != engine)
      return false;
    handed_back_.insert(held.first);
    return true;
  });
}

void BatchTail::forget(GroupId group) {
  for (std::uint64_t k = 0; k < per_group_; ++k) {
    const std::uint64_t response = group.value() * per_group_ + k;
    generating_.erase(response);
    handed_back_.erase(response);
  }
}

void BatchTail::on_event(const event::Generated& e) {
  for (const auto& item : e.items) {
    const auto held = generating_.find(item.response.value());
    if (held == generating_.end() || held->second.engine != e.actor ||
        held->second.lease != item.lease)
      continue;
    generating_.erase(held);
    if (item.finish == actors::FinishReason::Interrupted)
      handed_back_.insert(item.response.value());
  }
}

void BatchTail::on_event(const event::TensorsLost& e) {
  for (const ResponseId r : e.lost)
    handed_back_.insert(r.value());
}

void BatchTail::on_event(const event::Resumed&) {
  generating_.clear();
  handed_back_.clear();
  lacks_groups_ = false;
  resumed_ = true;
}

void BatchTail::on_command(const command::Dispatch& c) {
  if (is_evaluation(c.lease))
    return;
  for (const ResponseId r : c.responses) {
    handed_back_.erase(r.value());
    generating_[r.value()] = {c.actor, c.lease};
  }
}

void BatchTail::on_command(const command::Waiting& c) {
  const bool works = c.cause.kind == WaitKind::Work;
  const bool moves = c.cause.kind == WaitKind::RoleSwitch && c.cause.action;
  if (c.actor == trainer_ && !works && !moves)
    lacks_groups_ = c.cause.kind == WaitKind::Groups;
}

}  // namespace temper::orchestrator
