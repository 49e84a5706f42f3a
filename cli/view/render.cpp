#include "cli/view/render.hpp"

#include "cli/view/parts.hpp"
#include "core/text/numbers.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace temper::cli {
namespace {

using actors::CardState;

constexpr std::size_t kMostCards = 8;
constexpr std::size_t kMostActors = 12;

void draw_head(Canvas& c, const Frame& f) {
  c.to(kIndent).text("temper ", kAccent).text(f.name, kTitle).text("   ");
  c.text(f.subtitle, kFaint).line();
  const double done = f.steps > 0 ? static_cast<double>(f.step) / static_cast<double>(f.steps) : 0;
  const std::string step = fmt::format("  {}/{} steps  ",
                                       grouped(static_cast<std::int64_t>(f.step)),
                                       grouped(static_cast<std::int64_t>(f.steps)));
  const std::string time = fmt::format("{} {}, {} left",
                                       clock_text(f.elapsed),
                                       f.simulated ? "simulated" : "elapsed",
                                       f.left ? clock_text(*f.left) : std::string("-:--"));
  const std::size_t text = kIndent * 2 + display_width(step) + display_width(time);
  const std::size_t columns =
      c.width() > text + 10 ? std::min<std::size_t>(c.width() - text, 60) : 10;
  const Canvas::Part part{done, kAccent};
  c.to(kIndent).bar(std::span(&part, 1), columns, 1);
  c.text(step, kTitle).text(time, kLabel).line();
}

void draw_reward(Canvas& c, const Frame& f) {
  label(c, "reward");
  if (f.rewards.empty()) {
    c.text("after the first step", kFaint).line();
    return;
  }
  const auto [low, high] = std::minmax_element(f.rewards.begin(), f.rewards.end());
  c.text(fmt::format("{:<7.3f}", f.rewards.back()), kTitle);
  if (f.drawn)
    return c.text("random values: no model is trained", kFaint).line();
  const std::string range = fmt::format("  {:.3f} to {:.3f}", *low, *high);
  const std::string updates = fmt::format(", steps 1 to {}", f.step);
  const std::size_t all = range.size() + updates.size();
  constexpr std::size_t kLeast = 20;
  const std::string tail = c.room() > all + kLeast ? range + updates : range;
  const std::size_t columns =
      c.room() > kLeast ? std::min<std::size_t>(c.room() - tail.size(), 60) : 0;
  c.sparkline(f.rewards, columns, *low, *high, kGood);
  c.text(tail, kFaint).line();
}

/// Metrics of the last step, as many as fit in two lines.
void draw_last_step(Canvas& c, const Frame& f) {
  if (f.drawn || f.last_step.empty())
    return;
  label(c, "last step");
  std::size_t lines = 1;
  for (const StepFigure& metric : f.last_step) {
    const std::string text =
        metric.value < 1000 ? fmt::format("{:.3g}", metric.value) : short_number(metric.value);
    if (c.room() < metric.name.size() + 1 + text.size()) {
      if (++lines > 2)
        break;
      c.line();
      label(c, "");
    }
    figure(c, metric.name, text);
  }
  c.line();
}

void draw_tokens(Canvas& c, const Frame& f) {
  label(c, "tokens/s");
  figure(c, "raw", short_number(f.recent.generated));
  figure(c, "trained", short_number(f.recent.trained));
  figure(c, "effective", short_number(f.recent.effective));
  if (!f.cards.empty())
    per_card(c, f.recent.trained / static_cast<double>(f.cards.size()));
  c.line();
}

double busy_of(const CardFrame& card) {
  double busy = 0;
  for (const auto& [state, name] : EnumNames<CardState>::value)
    busy += orchestrator::is_busy(state) ? card.shares[orchestrator::index_of(state)] : 0;
  return busy;
}

/// The name of a state. An actor that is down and was never lost is starting.
std::string_view word_for(CardState s, const Frame& f) {
  return s == CardState::Down && f.restarts == 0 ? "starting" : name_of(s);
}

/// "decode 82 · wait-quota 9": states by share in percent, as many as fit; "…" for the rest.
void draw_states(Canvas& c, const CardFrame& card, const Frame& f) {
  std::vector<CardState> states;
  for (const auto& [state, name] : EnumNames<CardState>::value) {
    if (card.shares[orchestrator::index_of(state)] >= 0.005)
      states.push_back(state);
  }
  std::stable_sort(states.begin(), states.end(), [&](CardState a, CardState b) {
    return card.shares[orchestrator::index_of(a)] > card.shares[orchestrator::index_of(b)];
  });
  for (const CardState s : states) {
    const std::string text =
        fmt::format("{} {:.0f}", word_for(s, f), card.shares[orchestrator::index_of(s)] * 100);
    const std::string_view mark = c.coloured() ? "■ " : "";
    const std::size_t more = s == states.back() ? 0 : 3;  // room for the "…"
    if (c.room() < text.size() + display_width(mark) + more) {
      remark(c, "…", kLabel);
      break;
    }
    c.text(mark, paint_of(s)).text(text, orchestrator::is_busy(s) ? Paint{} : kLabel).text("  ");
  }
}

void draw_card(Canvas& c, std::string_view name, const CardFrame& card, const Frame& f) {
  label(c, name);
  std::vector<Canvas::Part> parts, waits;
  for (const auto& [state, text] : EnumNames<CardState>::value) {
    if (state != CardState::Idle)  // the empty rest
      (orchestrator::is_busy(state) ? parts : waits)
          .push_back({card.shares[orchestrator::index_of(state)], paint_of(state)});
  }
  const std::size_t solid = parts.size();
  parts.insert(parts.end(), waits.begin(), waits.end());
  c.bar(parts, std::clamp<std::size_t>(c.width() / 4, 8, 32), solid);
  c.text(fmt::format(" {:>5} ", percent(busy_of(card))), kTitle).text(" ");
  c.text(card.host.empty() ? "" : "on " + card.host + "  ", kLabel);
  draw_states(c, card, f);
  c.line();
}

void draw_cards(Canvas& c, const Frame& f) {
  c.line();
  if (f.cards.size() <= kMostCards) {
    for (const CardFrame& card : f.cards)
      draw_card(c, fmt::format("card {}", card.card), card, f);
    return;
  }
  CardFrame mean;
  for (const CardFrame& card : f.cards) {
    for (std::size_t s = 0; s < orchestrator::kCardStates; ++s)
      mean.shares[s] += card.shares[s] / static_cast<double>(f.cards.size());
  }
  draw_card(c, fmt::format("{} cards", f.cards.size()), mean, f);
  const auto [least, most] = std::minmax_element(
      f.cards.begin(), f.cards.end(), [](const CardFrame& a, const CardFrame& b) {
        return busy_of(a) < busy_of(b);
      });
  draw_card(c, fmt::format("least: {}", least->card), *least, f);
  draw_card(c, fmt::format("most: {}", most->card), *most, f);
}

void draw_staleness(Canvas& c, const Frame& f) {
  std::uint64_t total = 0;
  for (const auto& [age, groups] : f.staleness)
    total += groups;
  c.line();
  label(c, "staleness");
  std::string tail = fmt::format("mean {:.2f}, bound {}", f.staleness_mean, f.bound);
  constexpr std::size_t kFigures = 10;  // age, share and gaps
  const std::size_t ages = static_cast<std::size_t>(f.bound) + 1;
  if (c.room() < ages * kFigures + tail.size())
    tail = fmt::format("bound {}", f.bound);
  const std::size_t each = c.room() > tail.size() ? (c.room() - tail.size()) / ages : 0;
  const std::size_t columns = each > kFigures + 1 ? std::min<std::size_t>(each - kFigures, 10) : 0;
  for (std::uint64_t age = 0; age <= f.bound && c.room() >= columns + kFigures + tail.size();
       ++age) {
    const auto it = f.staleness.find(static_cast<std::int64_t>(age));
    const double share = total == 0 || it == f.staleness.end()
                             ? 0
                             : static_cast<double>(it->second) / static_cast<double>(total);
    c.text(fmt::format("{} ", age), kLabel);
    const Canvas::Part part{share, kAccent};
    c.bar(std::span(&part, 1), columns, 1).text(fmt::format("{:>6}  ", percent(share)));
  }
  c.text(tail, kFaint).line();
  label(c, "slots");
  const double held =
      f.slots > 0 ? static_cast<double>(f.slots_held) / static_cast<double>(f.slots) : 0;
  c.text(percent(held), kTitle)
      .text(
          fmt::format(" of {} filled now, {} on average", grouped(f.slots), percent(f.slots_mean)),
          kLabel)
      .line();
  label(c, "groups");
  figure(c, "generating", std::to_string(f.queue.generating));
  figure(c, "scoring", std::to_string(f.queue.scoring));
  figure(c, "ready", std::to_string(f.queue.ready));
  figure(c, "training", std::to_string(f.queue.training));
  figure(c, "checkpoints", std::to_string(f.checkpoints));
  if (const std::string restarts = std::to_string(f.restarts); c.room() > 9 + restarts.size())
    c.text("restarts ", kLabel).text(restarts, f.restarts > 0 ? kBad : kTitle);
  c.line();
  if (f.responses_failed == 0 && f.protocol_violations == 0)
    return;
  label(c, "trouble");
  if (f.protocol_violations > 0)
    figure(c, "protocol violations", std::to_string(f.protocol_violations));
  figure(c, "responses failed", std::to_string(f.responses_failed));
  figure(c, "groups failed", std::to_string(f.groups_failed));
  c.text(f.last_failure, kFaint).line();
}

void draw_actor(Canvas& c, const ActorFrame& a) {
  label(c, a.name);
  const bool starts =
      a.state == CardState::Down && a.restarts == 0 && a.cause == orchestrator::WaitKind::Start;
  c.text(orchestrator::is_busy(a.state) ? "● " : "○ ", starts ? kLabel : paint_of(a.state));
  c.text(starts ? "starting" : name_of(a.state), orchestrator::is_busy(a.state) ? Paint{} : kLabel);
  c.to(kIndent + kLabelWidth + 15);
  if (a.load > 0) {
    c.text(a.capacity > 0 ? fmt::format("{} of {} responses", a.load, a.capacity)
                          : fmt::format("{} responses", a.load));
  }
  if (!a.on.empty() && !starts)
    c.text(a.load > 0 ? ", " : "").text(a.on, kFaint);
  if (a.restarts > 0)
    c.text(fmt::format("  restarted {}x", a.restarts), kBad);
  c.line();
}

/// The actors to show if not all fit: the first ones, and always a trainer.
std::vector<const ActorFrame*> shown_actors(const Frame& f, std::size_t most) {
  std::vector<const ActorFrame*> shown;
  for (std::size_t i = 0; i < std::min(most, f.actors.size()); ++i)
    shown.push_back(&f.actors[i]);
  const auto is_trainer = [](const ActorFrame& a) { return a.name.starts_with("trainer"); };
  const auto trainer = std::ranges::find_if(f.actors, is_trainer);
  if (trainer != f.actors.end() && !shown.empty() && &*trainer > shown.back())
    shown.back() = &*trainer;
  return shown;
}

/// Draws the actors in at most max(rows, 2) lines.
void draw_actors(Canvas& c, const Frame& f, std::size_t rows) {
  if (f.actors.empty())
    return;
  c.line();
  const std::size_t all = f.actors.size();
  const auto shown = shown_actors(f, all <= rows ? all : std::max<std::size_t>(rows, 2) - 1);
  for (const ActorFrame* actor : shown)
    draw_actor(c, *actor);
  if (shown.size() == all)
    return;
  std::size_t busy = 0, down = 0;
  for (const ActorFrame& a : f.actors) {
    busy += orchestrator::is_busy(a.state) ? 1U : 0U;
    down += a.state == CardState::Down ? 1U : 0U;
  }
  label(c, "");
  c.text(fmt::format("and {} more; of all actors {} busy, {} {}",
                     all - shown.size(),
                     busy,
                     down,
                     word_for(CardState::Down, f)),
         kFaint)
      .line();
}

/// Failures so far, for the end of the line; empty if there are none.
std::string trouble_text(const Frame& f) {
  std::string text;
  if (f.responses_failed > 0)
    text += fmt::format(" failed {} ({} groups)", f.responses_failed, f.groups_failed);
  if (f.protocol_violations > 0)
    text += fmt::format(" protocol violations {}", f.protocol_violations);
  return text;
}

}  // namespace

std::string render_frame(const Frame& frame, std::size_t width, Colours colours, std::size_t rows) {
  Canvas c(std::max<std::size_t>(width, 20), colours);
  draw_head(c, frame);
  c.line();
  draw_reward(c, frame);
  if (!frame.held_out.empty())
    label(c, "held out").text(frame.held_out).line();
  draw_last_step(c, frame);
  draw_tokens(c, frame);
  draw_cards(c, frame);
  draw_staleness(c, frame);
  const std::size_t above = c.lines() + 1;  // and an empty one
  draw_actors(c, frame, rows == 0 ? kMostActors : rows - std::min(rows, above));
  return c.take();
}

std::string render_line(const Frame& f) {
  std::string busy;
  double all = 0;
  for (const CardFrame& card : f.cards) {
    all += busy_of(card) / static_cast<double>(f.cards.size());
    busy += fmt::format("{}{:.0f}", busy.empty() ? "" : "/", busy_of(card) * 100);
  }
  if (f.cards.size() > kMostCards)
    busy = fmt::format("{:.0f}", all * 100);
  const std::int64_t oldest = f.staleness.empty() ? 0 : f.staleness.rbegin()->first;
  return fmt::format(
      "{:>8} {}step {}/{} reward {} tokens/s raw {} trained {} effective {} busy% {} slots% {:.0f} "
      "staleness "
      "{:.2f} "
      "(max {}/{}) groups {}+{}+{} left {}{}",
      clock_text(f.elapsed),
      f.simulated ? "simulated, " : "",
      f.step,
      f.steps,
      f.rewards.empty() ? "-" : fmt::format("{:.3f}", f.rewards.back()),
      short_number(f.recent.generated),
      short_number(f.recent.trained),
      short_number(f.recent.effective),
      busy.empty() ? "-" : busy,
      100 * f.slots_mean,
      f.staleness_mean,
      oldest,
      f.bound,
      f.queue.generating,
      f.queue.scoring,
      f.queue.ready,
      f.left ? clock_text(*f.left) : "-",
      trouble_text(f));
}

}  // namespace temper::cli
