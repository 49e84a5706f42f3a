// Small random runs for the world around a scheduler.
#include "tests/support/scheduler_world.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace temper::orchestrator::testing {

using namespace std::chrono_literals;

namespace {

/// Half of the runs have no problems, as runs whose work is counted.
ProblemPlan random_problems(Random random) {
  ProblemPlan plan;
  if (random.chance(0.5))
    return plan;
  plan.seed = random.next();
  plan.shuffle = random.chance(0.7);
  for (std::uint64_t k = 0, n = 1 + random.below(4); k < n; ++k) {
    ProblemSource& source = plan.sources.emplace_back();
    source.name = source.stream = std::string(1, static_cast<char>('a' + k));
    source.problems = 1 + random.below(6);
    source.weights = {{0, k == 0 ? 1 : 3 * random.uniform()}};
    if (k > 0 && random.chance(0.5))
      source.weights[1 + random.below(6)] = random.chance(0.5) ? 0 : 3 * random.uniform();
    source.held_out = random.below(8);
  }
  if (random.chance(0.6))
    plan.set_aside = {random.uniform(), 0.5 * random.uniform(), 0.5, 1 + random.below(3)};
  return plan;
}

/// Some runs with problems and a reference have two or three teachers in its place, with one or two
/// actors each.
void add_teachers(SchedulerConfig& c, Random random) {
  const auto reference = std::ranges::find(c.actors, actors::RoleKind::Reference, &ActorSpec::role);
  if (c.problems.sources.empty() || reference == c.actors.end() ||
      (c.switching == Switching::OneByOne && reference->takes_turns) || random.chance(0.3))
    return;
  TeacherPlan& plan = c.problems.teachers.emplace();
  std::vector<ActorSpec> actors;
  const std::uint64_t teachers = 2 + random.below(2);
  for (std::uint32_t t = 0; t < teachers; ++t) {
    plan.names.emplace_back(1, static_cast<char>('t' + t));
    for (std::uint64_t i = 0, n = 1 + random.below(2); i < n; ++i) {
      ActorSpec& actor = actors.emplace_back(*reference);
      actor.name = fmt::format("reference-{}-{}", plan.names.back(), i);
      actor.teacher = t;
    }
  }
  for (const ProblemSource& source : c.problems.sources) {
    auto& of = plan.of_problems.emplace_back();
    for (std::uint64_t n = random.chance(0.5) ? 1 : source.problems; n > 0; --n)
      of.push_back(static_cast<std::uint8_t>(random.below(teachers)));
  }
  c.actors.insert(c.actors.erase(reference), actors.begin(), actors.end());
}

}  // namespace

SchedulerConfig random_config(Random& random) {
  SchedulerConfig c;
  c.staleness_bound = random.below(5);
  c.groups_per_update = static_cast<std::int32_t>(1 + random.below(3));
  c.responses_per_group = static_cast<std::int32_t>(1 + random.below(3));
  c.steps = 1 + random.below(5);
  c.checkpoint_every = random.below(3);
  c.score_batch = static_cast<std::int32_t>(1 + random.below(6));
  c.max_restarts = 1000;
  const auto add = [&](std::string name, actors::RoleKind role, std::int32_t concurrency) {
    c.actors.push_back({std::move(name), role, {CardId(0)}, concurrency});
  };
  const auto engines = 1 + random.below(3);
  for (std::uint64_t i = 0; i < engines; ++i) {
    add(fmt::format("rollout-{}", i),
        actors::RoleKind::Rollout,
        static_cast<std::int32_t>(1 + random.below(8)));
  }
  if (random.chance(0.5))
    add("reference-0", actors::RoleKind::Reference, 0);
  add("reward-0", actors::RoleKind::Reward, 0);
  if (random.chance(0.3))
    add("reward-1", actors::RoleKind::Reward, 0);
  add("trainer-0", actors::RoleKind::Trainer, 0);
  const actors::PlacementTraits& mode =
      actors::kPlacementModes[random.below(actors::kPlacementModes.size())];
  bool fixed = mode.lends();  // at least the first engine
  for (ActorSpec& actor : c.actors) {
    if (actor.role == actors::RoleKind::Rollout)
      actor.takes_turns = mode.shares && !std::exchange(fixed, false);
    if (actor.role == actors::RoleKind::Reference)
      actor.takes_turns = mode.shares_reference && c.actors[engines - 1].takes_turns;
  }
  if (mode.alternates()) {
    const auto turning = static_cast<std::int32_t>(engines);
    c.switching = random.chance(0.5) ? Switching::OneByOne : Switching::Together;
    for (std::int32_t share = 1; share <= turning; ++share) {
      if (share == turning || random.chance(0.6))
        c.shares.push_back(share);
    }
    c.crowding = 0.05 + 0.95 * random.uniform();
    for (std::int32_t part = 1; random.chance(0.5) && std::size(c.parts) < std::size(c.shares);) {
      part += static_cast<std::int32_t>(random.below(2));
      c.parts.push_back(part);
    }
    c.kv_slots = random.chance(0.5) ? 1 + static_cast<std::int64_t>(random.below(8)) : 0;
  }
  c.admission = random.chance(0.4) ? Admission::JustInTime : Admission::Eager;
  c.lending = random.chance(0.5) ? LendingRule::Auto : LendingRule::Always;
  c.return_share = random.uniform();
  for (bool* means : {&c.stragglers.even_load,
                      &c.stragglers.migrate,
                      &c.stragglers.deadline_first,
                      &c.stragglers.keep_kv,
                      &c.stragglers.predict_length,
                      &c.stragglers.dispatch_ahead,
                      &c.stragglers.prepare})
    *means = random.chance(0.7);
  c.age = random.chance(0.3) ? AgeRule::TokenWeighted : AgeRule::FirstToken;
  if (random.chance(0.4)) {
    c.staleness_rule = kStalenessRules[random.below(kStalenessRules.size())].value;
    if (c.staleness_rule == StalenessRuleKind::Drop)
      c.staleness_bound = std::max<std::uint64_t>(1, c.staleness_bound);
    if (c.staleness_rule == StalenessRuleKind::Sync)
      c.staleness_bound = 0;
    if (traits_of(c.staleness_rule).fractions)
      c.staleness_fraction = random.uniform();
  }
  if (random.chance(0.3)) {
    c.filter_equal_rewards = true;
    c.filter_limit = 4 * random.uniform();
  }
  c.starts_at_once = static_cast<std::int32_t>(random.below(3));
  c.restarts_forgiven_after = 1s * static_cast<std::int64_t>(1 + random.below(100));
  if (c.switching == Switching::Together && random.chance(0.5)) {
    c.evaluation = {1 + random.below(3),
                    static_cast<std::int32_t>(1 + random.below(6)),
                    static_cast<std::int32_t>(1 + random.below(3)),
                    random.uniform(),
                    random.chance(0.5)};
  }
  c.problems = random_problems(Random(random.state()[0], "problems"));
  add_teachers(c, Random(random.state()[0], "teachers"));
  c.one_version = !mode.shares && traits_of(c.staleness_rule).limits_running &&
                  Random(random.state()[0], "one version").chance(0.5);
  return c;
}

}  // namespace temper::orchestrator::testing
