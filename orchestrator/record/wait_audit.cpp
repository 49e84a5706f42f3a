#include "orchestrator/record/wait_audit.hpp"

#include <fmt/format.h>

#include <iterator>

namespace temper::orchestrator {

void WaitAudit::settled(std::uint64_t response) {
  generating_.erase(response);
  handed_back_.erase(response);
  if (const auto it = to_score_.find(response); it != to_score_.end())
    leave_scoring(it);
}

void WaitAudit::leave_scoring(std::map<std::uint64_t, std::uint32_t>::iterator response) {
  --per_teacher_[response->second];
  to_score_.erase(response);
}

void WaitAudit::generating(std::uint64_t response) {
  settled(response);
  generating_.insert(response);
}

void WaitAudit::handed_back(std::uint64_t response) {
  settled(response);
  handed_back_.insert(response);
}

void WaitAudit::to_score(std::uint64_t response, std::uint32_t teacher) {
  settled(response);
  to_score_.emplace(response, teacher);
  ++per_teacher_[teacher];
}

void WaitAudit::left(std::uint64_t first, std::uint64_t last) {
  for (auto* stage : {&generating_, &handed_back_})
    stage->erase(stage->lower_bound(first), stage->lower_bound(last));
  for (auto it = to_score_.lower_bound(first); it != to_score_.end() && it->first < last;)
    leave_scoring(it++);
}

std::vector<std::string> WaitAudit::check(const std::vector<ActorSpec>& actors,
                                          const Cards& cards) {
  using S = actors::CardState;
  using actors::RoleKind;
  std::vector<std::string> violations;
  for (auto it = said_.begin(); it != said_.end();) {
    const command::Waiting& wait = it->second;
    const ActorSpec& actor = actors[it->first];
    const bool judged = wait.state != S::Down && wait.state != S::Switch;
    const std::string what = judged ? wrong(actor, wait.cause.kind, cards) : std::string();
    if (!what.empty())
      violations.push_back(
          fmt::format("{} waits for {}, but {}", actor.name, name_of(wait.cause.kind), what));
    it = what.empty() ? std::next(it) : said_.erase(it);
  }
  return violations;
}

std::string WaitAudit::wrong(const ActorSpec& actor, WaitKind kind, const Cards& cards) const {
  const auto waiting = per_teacher_.find(actor.teacher.value_or(0));
  const std::size_t scores =
      actor.role == actors::RoleKind::Reference && waiting != per_teacher_.end() ? waiting->second
                                                                                 : std::size_t{0};
  const bool returned = !handed_back_.empty() && cards.held;
  switch (kind) {
    case WaitKind::Responses:
      if (returned)
        return fmt::format("{} responses wait for cards of engines", handed_back_.size());
      if (scores > 0)
        return fmt::format("{} responses wait to be scored", scores);
      if (generating_.empty() && cards.held && !cards.evaluating)
        return "none is generated, and others hold cards of engines";
      return {};
    case WaitKind::SharedCards:
      if (!cards.shared && !actor.takes_turns)
        return "the run shares no cards";
      if (!cards.evaluating && scores == 0 && handed_back_.empty() && !generating_.empty())
        return fmt::format("{} responses are generated, and none waits", generating_.size());
      return {};
    case WaitKind::StalenessBound:
    case WaitKind::TrainerDemand:
    case WaitKind::Weights:
    case WaitKind::EndOfRun:
      if (!cards.evaluating && !generating_.empty())
        return fmt::format("{} responses are generated", generating_.size());
      return {};
    default:
      return {};
  }
}

}  // namespace temper::orchestrator
