#include "tests/support/scheduler_world.hpp"

#include "tests/support/liar.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>

namespace temper::orchestrator::testing {
namespace {

/// Of the world that was made last; a check that fails aborts, and says no seed.
std::atomic<std::uint64_t> last_seed{0};

extern "C" void name_the_seed(int) {
  std::array<char, 32> digits{};
  std::size_t first = digits.size();
  digits[--first] = '\n';
  std::uint64_t seed = last_seed;
  do {
    digits[--first] = static_cast<char>('0' + seed % 10);
    seed /= 10;
  } while (seed > 0);
  constexpr std::string_view kWhat = "in the random world of seed ";
  static_cast<void>(::write(STDERR_FILENO, kWhat.data(), kWhat.size()));
  static_cast<void>(::write(STDERR_FILENO, digits.data() + first, digits.size() - first));
}

}  // namespace

World::World(SchedulerConfig config, const Chaos& chaos, std::uint64_t seed)
    : config_(std::move(config)),
      chaos_(chaos),
      random_(seed, "world"),
      actors_(config_.actors.size()) {
  last_seed = seed;
  std::signal(SIGABRT, name_the_seed);
}

Played World::play(std::uint64_t most_events) {
  deliver(event::Started{config_});
  while (!finish_ && sequence_ < most_events) {
    if (rollback_)
      restart_from_checkpoint(*rollback_);
    const auto deadline = scheduler_.next_deadline();
    if (!agenda_.empty() && (!deadline || agenda_.begin()->first.first < *deadline)) {
      now_ = std::max(now_, agenda_.begin()->first.first);
      const auto action = std::move(agenda_.begin()->second);
      agenda_.erase(agenda_.begin());
      action();
      maybe_scale();
    } else if (deadline) {
      now_ = std::max(now_, *deadline);
      deliver(event::DeadlineReached{});
    } else {
      break;
    }
  }
  Played played;
  played.stuck = !finish_;
  if (finish_)
    played.finish = *finish_;
  played.audit = auditor_.report();
  played.events = sequence_;
  played.lies_told = lies_told_;
  played.lies_found = lies_found_;
  played.responses_lost = responses_lost_;
  played.lost_in_batch = lost_in_batch_;
  played.most_versions = most_versions_;
  return played;
}

void World::deliver(const Event& event) {
  if (finish_)
    return;
  Record record{sequence_++, now_, event, scheduler_.on(event, now_)};
  if (std::holds_alternative<event::CheckpointSaved>(event)) {
    checkpoint_ = scheduler_.snapshot();
    checkpoint_sequence_ = record.sequence;
    checkpoint_version_ = scheduler_.progress().version;
    rollbacks_ = 0;
  }
  auditor_.feed(record);
  if (on_record)
    on_record(record);
  for (const Command& command : record.commands) {
    std::visit([this](const auto& c) { act(c); }, command);
  }
}

/// One more engine or verifier, one of them less, or one that was away is back. Where roles take
/// turns on cards their number stays.
void World::maybe_scale() {
  if (finish_ || rollback_ || config_.placement() != "separate" || !random_.chance(chaos_.scale))
    return;
  using actors::RoleKind;
  const RoleKind role = random_.chance(0.7) ? RoleKind::Rollout : RoleKind::Reward;
  std::vector<ActorSpec> actors = config_.actors;
  std::vector<std::size_t> there, away;
  for (std::size_t i = 0; i < actors.size(); ++i) {
    if (actors[i].role == role)
      (actors[i].away ? away : there).push_back(i);
  }
  if (there.size() > 1 && random_.chance(0.5)) {
    actors[there[random_.below(there.size())]].away = true;
  } else if (!away.empty() && random_.chance(0.5)) {
    actors[away[random_.below(away.size())]].away = false;
  } else if (there.size() + away.size() < 6) {
    ActorSpec more = actors[there.front()];
    more.name = fmt::format("{}-{}", name_of(role), 10 + there.size() + away.size());
    actors.push_back(more);
    actors_.emplace_back();
  } else {
    return;
  }
  config_.actors = actors;
  deliver(event::Scaled{std::move(actors), {}});
}

Duration World::delay(double mean_ms) {
  // A heavy tail now and then: the orders in which things happen should be many.
  const double u = random_.uniform();
  const double scale = random_.chance(0.05) ? 10 : 1;
  return Duration(static_cast<std::int64_t>(u * 2e6 * mean_ms * scale));
}

void World::at(Time due, std::function<void()> action) {
  agenda_.emplace(std::pair(due, next_agenda_++), std::move(action));
}

void World::to_actor(ActorId id, std::function<void(Actor&)> action, Answer answer) {
  Actor& actor = actors_[id.value()];
  actor.next_in = std::max(actor.next_in, now_ + delay(1));
  at(actor.next_in,
     [this, id, answer, incarnation = actor.incarnation, action = std::move(action)] {
       Actor& a = actors_[id.value()];
       if (!a.alive || a.incarnation != incarnation)
         return;
       const bool trainer = config_.actors[id.value()].role == actors::RoleKind::Trainer;
       if (random_.chance(trainer ? chaos_.trainer_crash : chaos_.crash))
         return crash(id);
       if (!trainer && answer == Answer::Awaited && random_.chance(chaos_.hang))
         return;
       action(a);
     });
}

void World::from_actor(ActorId id, Event event) {
  Actor& actor = actors_[id.value()];
  actor.next_out = std::max(actor.next_out, now_ + delay(1));
  at(actor.next_out, [this, id, incarnation = actor.incarnation, event = std::move(event)] {
    const Actor& a = actors_[id.value()];
    // What a dead actor said of itself is dropped with its connection; its work may still come.
    const bool work = std::holds_alternative<event::Generated>(event) ||
                      std::holds_alternative<event::ReferenceScored>(event) ||
                      std::holds_alternative<event::Judged>(event) ||
                      std::holds_alternative<event::Trained>(event);
    if (a.alive && a.incarnation == incarnation)
      hear(id, event);
    else if (work && random_.chance(chaos_.late_result))
      deliver(event);
  });
}

void World::hear(ActorId id, Event event) {
  if (finish_ || scheduler_.finished())
    return;
  Actor& actor = actors_[id.value()];
  if (chaos_.lie > 0 && random_.chance(chaos_.lie)) {
    event = lie_about(event, id, scheduler_, random_);
    actor.lied = true;
    ++lies_told_;
  }
  std::string what;
  if (const auto lie = scheduler_.find_invalid_claim(event, now_))
    what = lie->what;
  if (!scheduler_.may_say(id, tag_of(event)))
    what = "may not be said by it";
  if (what.empty())
    return deliver(event);
  TEMPER_CHECK(actor.lied, "an actor that never lied is believed");
  ++lies_found_;
  actor.alive = false;
  deliver(event::ActorDown{id, what, true});
}

void World::crash(ActorId id) {
  Actor& actor = actors_[id.value()];
  actor.alive = false;
  const auto incarnation = actor.incarnation;
  at(now_ + delay(3), [this, id, incarnation] {
    if (actors_[id.value()].incarnation == incarnation)
      deliver(event::ActorDown{id, "crashed"});
  });
}

void World::restart_from_checkpoint(const std::string&) {
  rollback_.reset();
  agenda_.clear();
  for (Actor& a : actors_) {
    a.alive = false;
    ++a.incarnation;
  }
  scheduler_ = Scheduler::restored(config_, checkpoint_).value();
  trainer_version_ = checkpoint_version_;
  prepared_.clear();
  event::Resumed resumed{checkpoint_sequence_, ++rollbacks_};
  for (const auto& [group, content] : scheduler_.state().saved.queue.groups()) {
    for (std::size_t k = 0; k < content.rows.size(); ++k) {
      const Row& row = content.rows[k];
      const bool generated = (row.fields & (1U << static_cast<unsigned>(Field::Response))) != 0;
      if (generated && !row.failed && random_.chance(chaos_.lost_tensors))
        resumed.lost.push_back(scheduler_.state().saved.queue.ids().at(group, k));
    }
  }
  responses_lost_ += resumed.lost.size();
  deliver(resumed);
}

void World::act(const command::Launch& c) {
  Actor& a = actors_[c.actor.value()];
  const auto incarnation = a.incarnation + 1;
  a = Actor{};
  a.incarnation = incarnation;
  a.alive = true;
  a.next_in = a.next_out = now_;
  std::optional<PolicyVersion> weights;
  if (config_.actors[c.actor.value()].role == actors::RoleKind::Trainer)
    weights = trainer_version_;
  to_actor(c.actor, [this, id = c.actor, weights](Actor&) {
    from_actor(id, event::ActorReady{id, weights});
  });
}

void World::act(const command::Discard& c) {
  actors_[c.actor.value()].alive = false;
  ++actors_[c.actor.value()].incarnation;
}

void World::act(const command::Retire& c) {
  Actor& a = actors_[c.actor.value()];
  if (!scheduler_.fleet().state(c.actor).ready()) {  // nobody there to be asked
    a.alive = false;
    ++a.incarnation;
    return;
  }
  at(now_ + delay(3), [this, id = c.actor, incarnation = a.incarnation] {
    Actor& ending = actors_[id.value()];
    if (ending.incarnation != incarnation)
      return;
    ending.alive = false;
    deliver(event::ActorDown{id, "ended"});
  });
}

void World::act(const command::Dispatch& c) {
  to_actor(c.actor, [this, c](Actor& a) { generate(c.actor, a, c); });
}

void World::generate(ActorId id, Actor& actor, const command::Dispatch& c) {
  for (const ResponseId r : c.responses) {
    Running running;
    running.lease = c.lease;
    running.left = static_cast<std::int64_t>(1 + random_.below(50));
    running.began = actor.version.value_or(PolicyVersion(0));
    actor.running[r] = running;
    finish_response(id, r, now_ + delay(20));
  }
  count_versions(actor);
}

/// Versions that an engine holds which ends each response under the one that began it.
void World::count_versions(const Actor& actor) {
  if (!config_.one_version)
    return;
  std::set<PolicyVersion> held;
  for (const auto& [id, running] : actor.running)
    held.insert(running.began);
  most_versions_ = std::max(most_versions_, held.size());
}

void World::finish_response(ActorId id, ResponseId response, Time due) {
  const auto incarnation = actors_[id.value()].incarnation;
  const LeaseId lease = actors_[id.value()].running.at(response).lease;
  at(due, [this, id, response, incarnation, lease] {
    Actor& a = actors_[id.value()];
    const auto it = a.running.find(response);
    if (!a.alive || a.incarnation != incarnation || it == a.running.end())
      return;
    if (it->second.lease != lease)
      return;
    Running done = std::move(it->second);
    a.running.erase(it);
    const PolicyVersion now = a.version.value_or(PolicyVersion(0));
    done.segments.push_back({config_.one_version ? done.began : now, Tokens(done.left)});
    event::Generated::Item item{lease, response, Tokens(5), {}, done.segments};
    for (const auto& s : item.segments)
      item.tokens += s.tokens;
    if (random_.chance(chaos_.failed_sample))
      item.finish = actors::FinishReason::Failed;
    from_actor(id, event::Generated{id, {item}});
  });
}

/// A part of every running response was sampled under the weights in use so far.
void World::split_segments(Actor& actor, PolicyVersion current) {
  if (config_.one_version)
    return;
  for (auto& [id, r] : actor.running) {
    const auto part = static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(r.left)));
    if (part == 0)
      continue;
    r.left -= part;
    r.segments.push_back({current, Tokens(part)});
  }
}

void World::hand_back(ActorId id, Actor& actor, const std::set<ResponseId>& responses) {
  if (actor.version)
    split_segments(actor, *actor.version);
  event::Generated parts{id, {}};
  for (const ResponseId r : responses) {
    const auto running = actor.running.find(r);
    if (running == actor.running.end())
      continue;
    event::Generated::Item item{running->second.lease,
                                r,
                                Tokens(5),
                                {},
                                running->second.segments,
                                actors::FinishReason::Interrupted};
    for (const auto& s : item.segments)
      item.tokens += s.tokens;
    item.cached = random_.chance(0.5);
    parts.items.push_back(item);
    actor.running.erase(running);
  }
  if (!parts.items.empty())
    from_actor(id, parts);
}

void World::act(const command::Withdraw& c) {
  to_actor(c.actor, [this, c](Actor& a) {
    hand_back(c.actor, a, {c.responses.begin(), c.responses.end()});
  });
}

void World::act(const command::Cancel& c) {
  to_actor(
      c.actor, [r = c.response](Actor& a) { a.running.erase(r); }, Answer::None);
}

void World::act(const command::ScoreReference& c) {
  to_actor(c.actor, [this, c](Actor&) {
    at(now_ + delay(3), [this, c, n = actors_[c.actor.value()].incarnation] {
      if (actors_[c.actor.value()].incarnation == n) {
        from_actor(c.actor, event::ReferenceScored{c.actor, c.lease});
      }
    });
  });
}

void World::act(const command::Judge& c) {
  to_actor(c.actor, [this, c](Actor&) {
    event::Judged judged{c.actor, c.lease, {}};
    for (std::size_t i = 0; i < c.responses.size(); ++i) {
      // Where it matters whether rewards are equal, they often are.
      const double u = random_.uniform();
      const double reward = config_.filter_equal_rewards ? (u < 0.5 ? 0 : 1) : u;
      judged.items.push_back({reward, random_.chance(chaos_.failed_sample)});
    }
    from_actor(c.actor, judged);
  });
}

void World::act(const command::StageWeights& c) {
  to_actor(c.actor, [this, c](Actor& a) {
    a.staged = c.version;
    from_actor(c.actor, event::WeightsStaged{c.actor, c.version, ""});
  });
}

void World::act(const command::CommitWeights& c) {
  to_actor(c.actor, [this, c](Actor& a) {
    TEMPER_CHECK(a.lied || a.staged == c.version, "commits what was staged");
    TEMPER_CHECK(a.lied || !a.version || *a.version <= c.version, "a version never regresses");
    if (a.version)
      split_segments(a, *a.version);
    a.version = c.version;
    from_actor(c.actor, event::WeightsCommitted{c.actor, c.version, ""});
  });
}

void World::act(const command::Switch& c) {
  to_actor(c.actor, [this, c](Actor& a) {
    std::string error;
    if (c.action == actors::SwitchAction::Interrupt) {
      std::set<ResponseId> all;
      for (const auto& [r, running] : a.running)
        all.insert(r);
      hand_back(c.actor, a, all);
    }
    if (c.action == actors::SwitchAction::FreeKv || c.action == actors::SwitchAction::FreeWeights) {
      TEMPER_CHECK(a.lied || a.running.empty(), "memory is freed only when nothing runs");
      a.running.clear();
    }
    if (c.action == actors::SwitchAction::FreeWeights)
      a.version.reset();
    if (c.action == actors::SwitchAction::OnloadOptimizer && random_.chance(chaos_.refuse_onload)) {
      error = "no room";
    }
    from_actor(c.actor, event::Switched{c.actor, c.action, {}, error});
  });
}

void World::act(const command::SaveCheckpoint& c) {
  to_actor(c.trainer, [this, c](Actor& a) {
    TEMPER_CHECK(a.lied || trainer_version_ == c.version,
                 "a checkpoint is of the trainer's version");
    from_actor(c.trainer, event::CheckpointSaved{c.version, ""});
  });
}

void World::act(const command::Rollback& c) {
  rollback_ = sentence(c.reason, {});
}
void World::act(const command::Finish& c) {
  finish_ = c;
}

}  // namespace temper::orchestrator::testing
