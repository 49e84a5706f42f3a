// Dispatcher: moving responses between engines.
#include "orchestrator/scheduler/dispatch/dispatcher.hpp"

#include <algorithm>

namespace temper::orchestrator {
namespace {

/// Responses move if the emptiest engine has less than the fullest by at least one in so many: a
/// smaller difference does not pay for the interruption.
constexpr std::int64_t kLeastShare = 4;
/// An engine that has less than one in so many of its slots in use decodes about as fast as it can.
constexpr std::int64_t kCrowded = 8;

/// Slots that neither training nor an evaluation uses.
std::int64_t free_slots(const RunState& run, ActorId engine) {
  return std::int64_t{run.fleet.spec(engine).concurrency} - run.load_of(engine).responses;
}

}  // namespace

void Dispatcher::migrate(RunState& run, const CardSharing& sharing) const {
  // Of a response of one version, another engine may not have the weights.
  if (!run.config.stragglers.migrate || run.config.one_version || run.fleet.rollouts().size() < 2 ||
      !run.withdrawn.empty() || !run.saved.queue.ready(Task::Generate).empty())
    return;
  const auto needed = run.urgent();
  if (!needed)
    return;
  std::optional<ActorId> full, empty;
  for (const ActorId id : run.fleet.rollouts()) {
    const ActorState& a = run.fleet.state(id);
    if (!a.ready() || !a.has_kv || a.switching || !sharing.may_generate(run, id) ||
        a.version != run.saved.progress.version)
      continue;
    const std::int32_t load = run.saved.queue.load(id).responses;
    if (!full || load > run.saved.queue.load(*full).responses)
      full = id;
    if (free_slots(run, id) > 0 && (!empty || load < run.saved.queue.load(*empty).responses))
      empty = id;
  }
  if (!full || !empty)
    return;
  const std::int64_t most = run.saved.queue.load(*full).responses;
  const std::int64_t more = most - run.saved.queue.load(*empty).responses;
  if (more < 2 || more * kLeastShare < most || most * kCrowded < run.fleet.spec(*full).concurrency)
    return;
  std::vector<ResponseId> moving = longest_generating(run, *full, *needed);
  // More than there are slots for would come back.
  const std::int64_t most_moved = std::min(more / 2, free_slots(run, *empty));
  if (std::ssize(moving) > most_moved)
    moving.resize(static_cast<std::size_t>(most_moved));
  if (moving.empty())
    return;
  std::ranges::sort(moving);
  run.withdraw(*full, std::move(moving));
}

/// Of groups up to `newest`, what the engine is generating; those that are expected to get longest
/// first, else the oldest.
std::vector<ResponseId> Dispatcher::longest_generating(const RunState& run,
                                                       ActorId engine,
                                                       PolicyVersion newest) const {
  struct Candidate {
    double length;
    ResponseId response;
  };
  std::vector<Candidate> found;
  for (const ResponseId r : run.saved.queue.generating(engine)) {
    const Group& group = *run.saved.queue.group(run.saved.queue.group_of(r));
    if (group.trainable || group.age_from() > newest)
      continue;
    found.push_back({run.config.stragglers.predict_length ? forecast_.of(group) : 0, r});
  }
  std::ranges::stable_sort(found, std::ranges::greater{}, &Candidate::length);
  std::vector<ResponseId> out;
  out.reserve(found.size());
  for (const Candidate& c : found)
    out.push_back(c.response);
  return out;
}

}  // namespace temper::orchestrator
