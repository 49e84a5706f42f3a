#include "orchestrator/metrics/timeline.hpp"

#include <algorithm>

namespace temper::orchestrator {
namespace {

using actors::CardState;

constexpr std::size_t kMostReasons = 1000;

Duration longest_deadline(const Deadlines& d) {
  return std::max({d.start,
                   d.generate,
                   d.reference,
                   d.reward,
                   d.train,
                   d.weights,
                   d.switching,
                   d.checkpoint,
                   d.drain});
}

/// Of actors of which none is known to work next, the one whose reason says more.
int telling(actors::RoleKind role) {
  switch (role) {
    case actors::RoleKind::Trainer:
      return 0;
    case actors::RoleKind::Rollout:
      return 1;
    case actors::RoleKind::Reference:
      return 2;
    case actors::RoleKind::Reward:
      return 3;
  }
  return 4;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
}

}  // namespace

std::string without_numbers(std::string_view on) {
  std::string out;
  for (std::size_t i = 0; i < on.size(); ++i) {
    if (!is_digit(on[i]) || (i > 0 && (is_word(on[i - 1]) || is_digit(on[i - 1])))) {
      out += on[i];
      continue;
    }
    while (i + 1 < on.size() && is_digit(on[i + 1]))
      ++i;
    out += 'N';
  }
  return out;
}

void Timeline::feed(const Record& record) {
  const Time now = record.time;
  evaluation_.feed(record);
  if (const auto* e = std::get_if<event::Activity>(&record.event)) {
    add_spans(e->actor, e->spans);
  } else if (const auto* started = std::get_if<event::Started>(&record.event)) {
    start(started->config, now);
  } else if (const auto* down = std::get_if<event::ActorDown>(&record.event)) {
    set_wait(down->actor, CardState::Down, "restart", now);
  } else if (std::holds_alternative<event::Resumed>(record.event)) {
    for (std::uint32_t a = 0; a < actors_.size(); ++a) {
      set_wait(ActorId(a), CardState::Down, "restart", now);
      given_[a].clear();  // who starts anew has all its cards
    }
  }
  for (const Command& command : record.commands) {
    if (const auto* wait = std::get_if<command::Waiting>(&command)) {
      set_wait(wait->actor, wait->state, wait->on, now);
    } else if (const auto* launch = std::get_if<command::Launch>(&command)) {
      set_wait(launch->actor, CardState::Down, "start", now);
    } else if (const auto* change = std::get_if<command::Switch>(&command)) {
      if (!change->cards_of.empty())
        give_cards(change->actor, change->cards_of);
    } else if (const auto* discard = std::get_if<command::Discard>(&command)) {
      set_wait(discard->actor, CardState::Down, "restart", now);
    }
  }
  if (progress_ && (now >= next_settle_ || ++unsettled_records_ >= kSettleRecords)) {
    unsettled_records_ = 0;
    const Time before = now - horizon_;
    for (std::size_t line = 0; line < lines_.size(); ++line)
      lines_[line].settle(before, sink_of(line));
    progress_->settle(before, nullptr);
    next_settle_ = now + horizon_ / 16;
  }
}

Duration Timeline::horizon_of(const SchedulerConfig& config) {
  return std::min(longest_deadline(config.deadlines), kMostLate) + kGrace;
}

void Timeline::start(const SchedulerConfig& config, Time now) {
  actors_ = config.actors;
  horizon_ = horizon_of(config);
  next_settle_ = now + horizon_;
  make_lines();
  waits_.resize(actors_.size());
  for (std::size_t a = 0; a < actors_.size(); ++a) {
    waits_[a].on = "start";
    waits_[a].reason = intern({actors_[a].role, CardState::Down, "start"});
  }
  for (const auto& on_line : actors_on_) {
    std::vector<CardWait> initial;
    initial.reserve(on_line.size());
    for (const std::size_t a : on_line)
      initial.push_back({CardState::Down, waits_[a].reason});
    lines_.emplace_back(std::move(initial));
  }
  progress_.emplace(std::vector{CardWait{CardState::Idle, 0}});
}

void Timeline::make_lines() {
  std::map<CardId, std::vector<std::size_t>> actors_of;
  for (std::size_t a = 0; a < actors_.size(); ++a) {
    for (const CardId card : actors_[a].cards)
      actors_of[card].push_back(a);
  }
  std::map<std::vector<std::size_t>, std::size_t> known;
  places_of_.resize(actors_.size());
  given_.resize(actors_.size());
  for (auto& [card, actors] : actors_of) {
    const auto [it, fresh] = known.try_emplace(actors, actors_on_.size());
    if (fresh) {
      std::stable_sort(actors.begin(), actors.end(), [this](std::size_t a, std::size_t b) {
        return telling(actors_[a].role) < telling(actors_[b].role);
      });
      for (std::size_t place = 0; place < actors.size(); ++place)
        places_of_[actors[place]].push_back({it->second, place});
      actors_on_.push_back(std::move(actors));
      cards_on_.emplace_back();
    }
    cards_.push_back(card);
    line_of_.push_back(it->second);
    cards_on_[it->second].push_back(card);
  }
}

void Timeline::give_cards(ActorId actor, const std::vector<ActorId>& engines) {
  if (actor.value() >= actors_.size())
    return;
  given_[actor.value()].clear();
  for (const ActorId engine : engines) {
    if (engine.value() >= actors_.size())
      continue;
    for (const auto& [line, place] : places_of_[engine.value()])
      given_[actor.value()].insert(line);
  }
}

void Timeline::add_spans(ActorId actor, const std::vector<actors::Span>& spans) {
  if (actor.value() >= actors_.size())
    return;
  for (const actors::Span& span : spans) {
    const std::vector<actors::Span> parts = evaluation_.divide(actor, span);
    for (const auto& [line, place] : places_of_[actor.value()]) {
      for (const actors::Span& part : parts) {
        if (works_on(actor, line))
          lines_[line].add_span(place, part);
      }
    }
    if (span.state <= CardState::Prefill)
      progress_->add_span(0, {CardState::Train, span.begin, span.end});
  }
}

void Timeline::set_wait(ActorId actor, CardState state, const std::string& on, Time now) {
  if (actor.value() >= actors_.size())
    return;
  ActorWait& wait = waits_[actor.value()];
  if (wait.state == state && wait.on == on)
    return;
  note_longest(wait, now);
  wait = {state, intern({actors_[actor.value()].role, state, without_numbers(on)}), on, now};
  for (const auto& [line, place] : places_of_[actor.value()])
    lines_[line].set_wait(now, place, {state, wait.reason});
}

std::size_t Timeline::intern(WaitReason reason) {
  if (const auto it = reason_index_.find(reason); it != reason_index_.end())
    return it->second;
  if (reasons_.size() >= kMostReasons) {
    reason.on = "other reasons";
    if (const auto it = reason_index_.find(reason); it != reason_index_.end())
      return it->second;
  }
  reason_index_[reason] = reasons_.size();
  reasons_.push_back(std::move(reason));
  longest_.emplace_back();
  return reasons_.size() - 1;
}

void Timeline::note_longest(const ActorWait& wait, Time end) {
  Longest& longest = longest_[wait.reason];
  if (end - wait.since > longest.duration)
    longest = {end - wait.since, wait.since, wait.on};
}

StateTimes Timeline::totals(Time until) const {
  StateTimes sum{};
  for (std::size_t line = 0; line < lines_.size(); ++line) {
    const StateTimes times = lines_[line].totals(until);
    for (std::size_t s = 0; s < kCardStates; ++s)
      sum[s] += times[s] * std::ssize(cards_on_[line]);
  }
  return sum;
}

Duration Timeline::without_generation_or_training(Time until) const {
  return progress_ ? progress_->totals(until)[index_of(CardState::Idle)] : Duration{};
}

std::vector<WaitTotal> Timeline::waits(Time until) const {
  std::vector<WaitTotal> totals(reasons_.size());
  for (std::size_t i = 0; i < reasons_.size(); ++i)
    totals[i] = {reasons_[i], {}, longest_[i].duration, longest_[i].at, longest_[i].on};
  for (std::size_t line = 0; line < lines_.size(); ++line) {
    const std::vector<Duration> waits = lines_[line].waits(until);
    for (std::size_t i = 0; i < waits.size(); ++i)
      totals[i].card_time += waits[i] * std::ssize(cards_on_[line]);
  }
  for (const ActorWait& wait : waits_) {
    WaitTotal& total = totals[wait.reason];
    if (until - wait.since > total.longest) {
      total.longest = until - wait.since;
      total.longest_at = wait.since;
      total.longest_on = wait.on;
    }
  }
  std::erase_if(totals, [](const WaitTotal& t) { return t.card_time <= Duration{}; });
  std::stable_sort(totals.begin(), totals.end(), [](const WaitTotal& a, const WaitTotal& b) {
    return a.card_time > b.card_time;
  });
  return totals;
}

CardTimeline::Sink Timeline::sink_of(std::size_t line) const {
  if (!sink_)
    return nullptr;
  return [this, line](const CardSlice& slice) { sink_(cards_on_[line].front(), slice); };
}

void Timeline::finish(Time end) {
  for (std::size_t line = 0; line < lines_.size(); ++line)
    lines_[line].finish(end, sink_of(line));
}

}  // namespace temper::orchestrator
