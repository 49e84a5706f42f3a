#include "orchestrator/scheduler/state/run_state.hpp"

#include "orchestrator/scheduler/queue/evaluation_ids.hpp"

#include <algorithm>

namespace temper::orchestrator {

namespace {

/// Share of the responses that passed, of those that were judged; nullopt: the group left before
/// all were.
std::optional<double> pass_rate(const Group& group, Outcome outcome, double pass) {
  if (outcome != Outcome::Trained && outcome != Outcome::Filtered)
    return std::nullopt;
  std::size_t judged = 0, passed = 0;
  for (const Row& row : group.rows) {
    judged += row.failed ? 0 : 1;
    passed += !row.failed && row.reward >= pass ? 1 : 0;
  }
  return static_cast<double>(passed) / static_cast<double>(std::max<std::size_t>(1, judged));
}

/// Fewer groups than a batch divided by this are not worth a pass of their own.
constexpr std::int64_t kParts = 16;

}  // namespace

void RunState::configure(const SchedulerConfig& to) {
  config = to;
  rule = make_staleness_rule(config.staleness_rule);
  saved.outstanding = OutstandingGroups();
  saved.outstanding.batch = config.groups_per_update;
  if (config.staleness_rule != StalenessRuleKind::Sync)
    saved.outstanding.bound =
        static_cast<double>(config.staleness_bound) + config.staleness_fraction;
  saved.queue = DistQueue(config.has_reference(), config.responses_per_group, credits());
  saved.queue.set_teachers(config.problems.teacher_count());
  evaluation = Evaluation(config.evaluation, config.problems);
}

std::int64_t RunState::credits() const {
  return static_cast<std::int64_t>(saved.outstanding.capacity()) * config.responses_per_group;
}

void RunState::finish(Ending how, std::optional<Reason> reason, std::optional<Reason> last) {
  if (finished)
    return;
  finished = true;
  emit(command::Finish{
      how == Ending::Complete, how == Ending::Stopped, std::move(reason), std::move(last)});
}

void RunState::release(GroupId group, Outcome outcome, std::optional<Reason> reason) {
  const Group& g = *saved.queue.group(group);
  for (std::size_t k = 0; k < g.rows.size(); ++k) {
    const LeaseId generating = g.rows[k].lease[static_cast<std::size_t>(Task::Generate)];
    if (const Lease* lease = saved.queue.find(generating)) {
      const ResponseId r = saved.queue.ids().at(group, k);
      emit(command::Cancel{lease->actor, r});
      withdrawn.erase(r);
    }
  }
  saved.problems.group_left(
      config.problems, group, pass_rate(g, outcome, config.problems.set_aside.pass));
  using Left = OutstandingGroups::Left;
  saved.outstanding.remove(g.age_from(),
                           outcome == Outcome::Trained ? Left::Trained : Left::GivenUp);
  saved.queue.remove_group(group);
  emit(command::Release{group, outcome, std::move(reason)});
}

void RunState::withdraw(ActorId engine, std::vector<ResponseId> responses) {
  withdrawn.insert(responses.begin(), responses.end());
  emit(command::Withdraw{engine, std::move(responses)});
}

std::uint64_t RunState::groups_still_needed() const {
  const std::uint64_t total = config.steps * static_cast<std::uint64_t>(config.groups_per_update);
  const std::uint64_t covered = saved.progress.groups_trained + saved.queue.groups().size();
  return total > covered ? total - covered : 0;
}

std::uint64_t RunState::groups_to_admit() const {
  const OutstandingGroups& s = saved.outstanding;
  const std::uint64_t most = s.capacity();
  return std::min(most - std::min(most, s.outstanding_groups()), groups_still_needed());
}

bool RunState::wants_groups() const {
  const OutstandingGroups& s = saved.outstanding;
  const auto batch = static_cast<std::uint64_t>(s.batch);
  return groups_still_needed() > 0 && saved.queue.has_credit() &&
         (config.stragglers.dispatch_ahead || s.since_step < batch ||
          s.outstanding_groups() < batch);
}

bool RunState::can_admit() const {
  return wants_groups() && rule->admits(saved.progress.version, saved.queue, saved.outstanding);
}

std::int64_t RunState::responses_in_flight() const {
  std::int64_t responses = 0;
  for (const ActorId id : fleet.rollouts())
    responses += saved.queue.load(id).responses;
  return responses;
}

std::optional<PolicyVersion> RunState::urgent() const {
  if (finished || draining())
    return std::nullopt;
  const auto demand = rule->demand(saved.outstanding);
  if (!demand)
    return std::nullopt;
  std::int64_t there = 0;
  for (const auto& [v0, groups] : saved.queue.trainable_by_version())
    there += v0 <= demand->newest ? groups : 0;
  return there < demand->groups ? std::optional(demand->newest) : std::nullopt;
}

std::optional<std::vector<GroupId>> RunState::select_batch() const {
  return rule->select(saved.queue, saved.outstanding);
}

bool RunState::waits_for_scores() const {
  return !fleet.turning_references().empty() && !saved.queue.ready(Task::Reference).empty();
}

bool RunState::scoring_makes_a_batch() const {
  return waits_for_scores() && rule->may_train(saved.queue.judged_by_version(), saved.outstanding);
}

std::int64_t RunState::least_to_prepare() const {
  const std::int64_t fills = config.parts.empty() ? 1 : config.parts.front();
  return std::max<std::int64_t>(fills, config.groups_per_update / kParts);
}

const DistQueue& RunState::table_of(LeaseId lease) const {
  return is_evaluation(lease) ? evaluation.table() : saved.queue;
}

Load RunState::load_of(ActorId actor) const {
  const Load training = saved.queue.load(actor), evaluating = evaluation.table().load(actor);
  return {training.leases + evaluating.leases, training.responses + evaluating.responses};
}

bool RunState::evaluation_is_due_at(PolicyVersion version) const {
  const std::uint64_t every = config.evaluation.every;
  return every > 0 && (version.value() % every == 0 || version.value() == config.steps);
}

bool RunState::evaluation_has_the_cards() const {
  return evaluation.generates() && fleet.takes_turns() && !fleet.lends();
}

bool RunState::evaluation_holds_up_training() const {
  return evaluation_has_the_cards() ||
         (evaluation.under_way() && evaluation_is_due_at(next(saved.progress.version)));
}

}  // namespace temper::orchestrator
