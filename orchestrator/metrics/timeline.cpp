#include "orchestrator/metrics/timeline.hpp"

#include "orchestrator/scheduler/state/config.hpp"

#include <algorithm>

namespace temper::orchestrator {
namespace {

using actors::CardState;

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

/// Priority of roles: among actors of which none is known to work next, the most informative reason
/// wins.
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

/// What an actor lacks until the last responses of a batch are there.
bool ends_with_the_tail(WaitKind said) {
  return said == WaitKind::Groups || said == WaitKind::StalenessBound ||
         said == WaitKind::Responses;
}

}  // namespace

void Timeline::feed(const Record& record) {
  const Time now = record.time;
  evaluation_.feed(record);
  const bool tail = tail_.now();
  tail_.feed(record);
  if (const auto* e = std::get_if<event::Activity>(&record.event)) {
    add_spans(e->actor, e->spans);
  } else if (std::holds_alternative<event::Started>(record.event)) {
    take(*config_in(record.event), now);
  } else if (const auto* scaled = std::get_if<event::Scaled>(&record.event)) {
    take_actors(scaled->actors, now);
  } else if (const auto* down = std::get_if<event::ActorDown>(&record.event)) {
    set_wait(down->actor, CardState::Down, {WaitKind::Restart}, now);
  } else if (std::holds_alternative<event::Resumed>(record.event)) {
    if (const SchedulerConfig* config = config_in(record.event))
      take(*config, now);
    for (std::uint32_t a = 0; a < actors_.size(); ++a) {
      set_wait(ActorId(a), CardState::Down, {WaitKind::Restart}, now);
      given_[a].clear();  // A restarted actor has all its cards.
    }
  }
  for (const Command& command : record.commands) {
    if (const auto* wait = std::get_if<command::Waiting>(&command)) {
      set_wait(wait->actor, wait->state, wait->cause, now);
    } else if (const auto* launch = std::get_if<command::Launch>(&command)) {
      set_wait(launch->actor, CardState::Down, {WaitKind::Start}, now);
    } else if (const auto* change = std::get_if<command::Switch>(&command)) {
      if (!change->cards_of.empty())
        give_cards(change->actor, change->cards_of);
    } else if (const auto* discard = std::get_if<command::Discard>(&command)) {
      set_wait(discard->actor, CardState::Down, {WaitKind::Restart}, now);
    }
  }
  if (tail != tail_.now()) {
    for (CardTimeline& line : lines_)
      line.set_tail(now, tail_.now());
    for (std::uint32_t a = 0; a < actors_.size(); ++a)
      set_wait(ActorId(a), waits_[a].state, WaitCause(waits_[a].cause), now);
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

void Timeline::take(const SchedulerConfig& config, Time now) {
  horizon_ = horizon_of(config);
  next_settle_ = now + horizon_;
  if (!progress_)
    progress_.emplace(std::vector{CardWait{CardState::Idle, 0}});
  take_actors(config.actors, now);
}

void Timeline::take_actors(const std::vector<ActorSpec>& actors, Time now) {
  const std::size_t before = actors_.size();
  actors_ = actors;
  waits_.resize(actors_.size());
  given_.resize(actors_.size());
  for (std::size_t a = before; a < actors_.size(); ++a) {
    waits_[a] = {CardState::Down,
                 intern({actors_[a].role, CardState::Down, {WaitKind::Start}}),
                 {WaitKind::Start}};
  }
  const std::vector<OnCard> here = assign_lines();
  places_of_.assign(actors_.size(), {});
  for (std::size_t line = 0; line < here.size(); ++line)
    fill_line(line, here[line], now);
}

/// Gives two cards separate lines if their actors differ, now or before. Returns the actors on each
/// line.
std::vector<Timeline::OnCard> Timeline::assign_lines() {
  std::map<CardId, OnCard> actors_of;
  for (std::size_t a = 0; a < actors_.size(); ++a) {
    for (const CardId card : actors_[a].cards)
      actors_of[card].push_back(a);
  }
  std::map<CardId, std::size_t> line_before;
  for (std::size_t i = 0; i < cards_.size(); ++i) {
    line_before[cards_[i]] = line_of_[i];
    actors_of.try_emplace(cards_[i]);
  }
  std::vector<OnCard> here(lines_.size());
  std::vector<bool> kept(lines_.size());
  std::map<std::pair<std::optional<std::size_t>, OnCard>, std::size_t> known;
  cards_.clear();
  line_of_.clear();
  for (std::vector<CardId>& cards : cards_on_)
    cards.clear();
  for (auto& [card, actors] : actors_of) {
    const auto it = line_before.find(card);
    const auto before = it == line_before.end() ? std::nullopt : std::optional(it->second);
    const auto [at, fresh] = known.try_emplace(std::pair(before, actors), 0);
    if (fresh) {
      const bool keeps = before && !kept[*before];
      if (keeps)
        kept[*before] = true;
      at->second = keeps ? *before : add_line(before);
      here.resize(lines_.size());
      here[at->second] = actors;
    }
    cards_.push_back(card);
    line_of_.push_back(at->second);
    cards_on_[at->second].push_back(card);
  }
  return here;
}

std::size_t Timeline::add_line(std::optional<std::size_t> split_from) {
  cards_on_.emplace_back();
  if (split_from) {
    lines_.push_back(CardTimeline(lines_[*split_from]));
    actors_on_.push_back(std::vector(actors_on_[*split_from]));
  } else {
    lines_.emplace_back(std::vector{CardWait{}});  // A placeholder until it is filled.
    actors_on_.emplace_back();
  }
  return lines_.size() - 1;
}

/// Sets the current actors of a line. Previous actors keep their places and are down.
void Timeline::fill_line(std::size_t line, const OnCard& here, Time now) {
  std::vector<std::size_t>& on_line = actors_on_[line];
  const auto rank = [this](std::size_t a) { return telling(actors_[a].role); };
  const auto wait_of = [this](std::size_t a) {
    return CardWait{waits_[a].state, waits_[a].reason, waits_[a].cause};
  };
  if (on_line.empty()) {
    on_line = here;
    std::ranges::stable_sort(on_line, {}, rank);
    std::vector<CardWait> initial;
    initial.reserve(on_line.size());
    for (const std::size_t a : on_line)
      initial.push_back({CardState::Down, waits_[a].reason, waits_[a].cause});
    lines_[line] = CardTimeline(std::move(initial));
    lines_[line].set_tail(now, tail_.now());
  }
  for (const std::size_t a : here) {
    if (std::ranges::find(on_line, a) != on_line.end())
      continue;
    const auto at = std::ranges::upper_bound(on_line, rank(a), {}, rank);
    const auto place = static_cast<std::size_t>(at - on_line.begin());
    on_line.insert(at, a);
    lines_[line].add_actor(place);
    lines_[line].set_wait(now, place, wait_of(a));
  }
  for (std::size_t place = 0; place < on_line.size(); ++place) {
    const std::size_t a = on_line[place];
    if (std::ranges::binary_search(here, a)) {
      places_of_[a].push_back({line, place});
    } else {
      const auto reason = intern({actors_[a].role, CardState::Down, {WaitKind::Removed}});
      lines_[line].set_wait(now, place, {CardState::Down, reason});
    }
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

void Timeline::set_wait(ActorId actor, CardState state, const WaitCause& cause, Time now) {
  if (actor.value() >= actors_.size())
    return;
  const bool tail = tail_.now() && ends_with_the_tail(cause.kind);
  ActorWait& wait = waits_[actor.value()];
  if (wait.state == state && wait.cause == cause && reasons_[wait.reason].tail == tail)
    return;
  wait = {
      state, intern({actors_[actor.value()].role, state, cause.without_instance(), tail}), cause};
  for (const auto& [line, place] : places_of_[actor.value()])
    lines_[line].set_wait(now, place, {state, wait.reason, cause});
}

std::size_t Timeline::intern(const WaitReason& reason) {
  const auto [it, fresh] = reason_index_.try_emplace(reason, reasons_.size());
  if (fresh)
    reasons_.push_back(reason);
  return it->second;
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

Duration Timeline::generating_in_tails(Time until) const {
  Duration sum{};
  for (std::size_t line = 0; line < lines_.size(); ++line)
    sum += lines_[line].generating_in_tails(until) * std::ssize(cards_on_[line]);
  return sum;
}

Duration Timeline::without_generation_or_training(Time until) const {
  return progress_ ? progress_->totals(until)[index_of(CardState::Idle)] : Duration{};
}

std::vector<WaitTotal> Timeline::waits(Time until) const {
  std::vector<WaitTotal> totals(reasons_.size());
  for (std::size_t i = 0; i < reasons_.size(); ++i)
    totals[i].reason = reasons_[i];
  for (std::size_t line = 0; line < lines_.size(); ++line) {
    const std::vector<Duration> waits = lines_[line].waits(until);
    for (std::size_t i = 0; i < waits.size(); ++i)
      totals[i].card_time += waits[i] * std::ssize(cards_on_[line]);
    if (cards_on_[line].empty())
      continue;
    const std::vector<LongestWait> longest = lines_[line].longest_waits(until);
    for (std::size_t i = 0; i < longest.size(); ++i) {
      if (longest[i].duration <= totals[i].longest)
        continue;
      totals[i].longest = longest[i].duration;
      totals[i].longest_at = longest[i].at;
      totals[i].longest_cause = longest[i].cause;
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
