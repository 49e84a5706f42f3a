#include "cli/view/render.hpp"

#include "cli/view/internal/style.hpp"
#include "core/text/numbers.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace temper::cli {
namespace {

using actors::CardState;

constexpr Paint kFaint{.foreground = 240};
constexpr Paint kGood{.foreground = 114};
constexpr Paint kBad{.foreground = 203};
constexpr Paint kAccent{.foreground = 75};
constexpr std::size_t kMostCards = 8;
constexpr std::size_t kMostActors = 12;

Paint paint_of(CardState s) {
  switch (s) {
    case CardState::Train:
      return {.foreground = 209};
    case CardState::Decode:
      return {.foreground = 77};
    case CardState::Prefill:
      return {.foreground = 115};
    case CardState::Reference:
      return {.foreground = 75};
    case CardState::Reward:
      return {.foreground = 177};
    case CardState::Evaluate:
      return {.foreground = 141};
    case CardState::WeightSync:
      return {.foreground = 222};
    case CardState::Switch:
      return {.foreground = 220};
    case CardState::WaitData:
      return {.foreground = 244};
    case CardState::WaitWeights:
      return {.foreground = 242};
    case CardState::WaitQuota:
      return {.foreground = 240};
    case CardState::Idle:
      return {.foreground = 238};
    case CardState::Down:
      return {.foreground = 88};
  }
  return {};
}

Canvas& label(Canvas& c, std::string_view text) {
  return c.to(kIndent).text(text, kLabel).to(kIndent + kLabelWidth);
}

/// A figure and what it is of: "trained 18.2k".
void figure(Canvas& c, std::string_view what, std::string_view value) {
  c.text(what, kLabel).text(" ").text(value, kTitle).text("  ");
}

void draw_head(Canvas& c, const Frame& f) {
  c.to(kIndent).text("temper ", kAccent).text(f.name, kTitle).text("   ");
  c.text(f.subtitle, kFaint).line();
  const double done = f.steps > 0 ? static_cast<double>(f.step) / static_cast<double>(f.steps) : 0;
  const std::string step = fmt::format("  {}/{} updates  ",
                                       grouped(static_cast<std::int64_t>(f.step)),
                                       grouped(static_cast<std::int64_t>(f.steps)));
  const std::string time = fmt::format("{} elapsed, {} left",
                                       clock_text(f.elapsed),
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
    c.text("after the first update", kFaint).line();
    return;
  }
  const auto [low, high] = std::minmax_element(f.rewards.begin(), f.rewards.end());
  c.text(fmt::format("{:<7.3f}", f.rewards.back()), kTitle);
  const std::size_t columns = c.room() > 20 ? std::min<std::size_t>(c.room() - 18, 60) : 0;
  c.sparkline(f.rewards, columns, *low, *high, kGood);
  c.text(fmt::format("  {:.3f} to {:.3f}", *low, *high), kFaint).line();
}

void draw_tokens(Canvas& c, const Frame& f) {
  label(c, "tokens/s");
  figure(c, "raw", short_number(f.recent.generated));
  figure(c, "trained", short_number(f.recent.trained));
  figure(c, "effective", short_number(f.recent.effective));
  if (!f.cards.empty()) {
    figure(c,
           "trained per card",
           short_number(f.recent.trained / static_cast<double>(f.cards.size())));
  }
  c.line();
}

double busy_of(const CardFrame& card) {
  double busy = 0;
  for (const auto& [state, name] : EnumNames<CardState>::value)
    busy += orchestrator::is_busy(state) ? card.shares[orchestrator::index_of(state)] : 0;
  return busy;
}

/// "decode 82 · wait-quota 9", the largest first, as far as there is room.
void draw_states(Canvas& c, const CardFrame& card) {
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
        fmt::format("{} {:.0f}", name_of(s), card.shares[orchestrator::index_of(s)] * 100);
    if (c.room() < text.size() + 2)
      break;
    c.text("■ ", paint_of(s)).text(text, orchestrator::is_busy(s) ? Paint{} : kLabel).text("  ");
  }
}

void draw_card(Canvas& c, std::string_view name, const CardFrame& card) {
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
  draw_states(c, card);
  c.line();
}

void draw_cards(Canvas& c, const Frame& f) {
  c.line();
  if (f.cards.size() <= kMostCards) {
    for (const CardFrame& card : f.cards)
      draw_card(c, fmt::format("card {}", card.card), card);
    return;
  }
  CardFrame mean;
  for (const CardFrame& card : f.cards) {
    for (std::size_t s = 0; s < orchestrator::kCardStates; ++s)
      mean.shares[s] += card.shares[s] / static_cast<double>(f.cards.size());
  }
  draw_card(c, fmt::format("{} cards", f.cards.size()), mean);
  const auto [least, most] = std::minmax_element(
      f.cards.begin(), f.cards.end(), [](const CardFrame& a, const CardFrame& b) {
        return busy_of(a) < busy_of(b);
      });
  draw_card(c, fmt::format("least, {}", least->card), *least);
  draw_card(c, fmt::format("most, {}", most->card), *most);
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
      .text(fmt::format(
                " of {} hold a response, {} in the mean", grouped(f.slots), percent(f.slots_mean)),
            kLabel)
      .line();
  label(c, "groups");
  figure(c, "generating", std::to_string(f.queue.generating));
  figure(c, "scoring", std::to_string(f.queue.scoring));
  figure(c, "ready", std::to_string(f.queue.ready));
  figure(c, "training", std::to_string(f.queue.training));
  figure(c, "checkpoints", std::to_string(f.checkpoints));
  c.text("restarts ", kLabel).text(std::to_string(f.restarts), f.restarts > 0 ? kBad : kTitle);
  c.line();
  if (f.responses_failed == 0 && f.lies == 0)
    return;
  label(c, "trouble");
  if (f.lies > 0)
    figure(c, "lies", std::to_string(f.lies));
  figure(c, "responses failed", std::to_string(f.responses_failed));
  figure(c, "groups failed", std::to_string(f.groups_failed));
  c.text(f.last_failure, kFaint).line();
}

void draw_actor(Canvas& c, const ActorFrame& a) {
  label(c, a.name);
  c.text(orchestrator::is_busy(a.state) ? "● " : "○ ", paint_of(a.state));
  c.text(name_of(a.state), orchestrator::is_busy(a.state) ? Paint{} : kLabel);
  c.to(kIndent + kLabelWidth + 15);
  if (a.load > 0) {
    c.text(a.capacity > 0 ? fmt::format("{} of {} responses", a.load, a.capacity)
                          : fmt::format("{} responses", a.load));
  }
  if (!a.on.empty())
    c.text(a.load > 0 ? ", " : "").text(a.on, kFaint);
  if (a.restarts > 0)
    c.text(fmt::format("  restarted {}x", a.restarts), kBad);
  c.line();
}

void draw_actors(Canvas& c, const Frame& f) {
  if (f.actors.empty())
    return;
  c.line();
  const std::size_t shown = f.actors.size() <= kMostActors ? f.actors.size() : kMostActors - 1;
  for (std::size_t i = 0; i < shown; ++i)
    draw_actor(c, f.actors[i]);
  if (shown == f.actors.size())
    return;
  std::size_t busy = 0, down = 0;
  for (const ActorFrame& a : f.actors) {
    busy += orchestrator::is_busy(a.state) ? 1U : 0U;
    down += a.state == CardState::Down ? 1U : 0U;
  }
  label(c, "");
  c.text(
       fmt::format("and {} more; of all, {} at work, {} down", f.actors.size() - shown, busy, down),
       kFaint)
      .line();
}

struct MainWait {
  double share = 0;
  std::string on;  ///< The longest of them.
};
/// Wait states, the largest share first.
std::vector<std::pair<CardState, MainWait>> main_waits(const orchestrator::Summary& s) {
  std::vector<std::pair<CardState, MainWait>> waits;
  for (const orchestrator::WaitSummary& w : s.waits) {  // the longest first
    auto it = std::find_if(
        waits.begin(), waits.end(), [&](const auto& known) { return known.first == w.state; });
    if (it == waits.end())
      it = waits.insert(waits.end(), {w.state, {0, w.on}});
    it->second.share += w.share;
  }
  std::stable_sort(waits.begin(), waits.end(), [](const auto& a, const auto& b) {
    return a.second.share > b.second.share;
  });
  return waits;
}

/// What went wrong so far, for the end of a line; empty: nothing.
std::string trouble_text(const Frame& f) {
  std::string text;
  if (f.responses_failed > 0)
    text += fmt::format(" failed {} ({} groups)", f.responses_failed, f.groups_failed);
  if (f.lies > 0)
    text += fmt::format(" lies {}", f.lies);
  return text;
}

}  // namespace

std::string render_frame(const Frame& frame, std::size_t width, Colours colours) {
  Canvas c(std::max<std::size_t>(width, 20), colours);
  draw_head(c, frame);
  c.line();
  draw_reward(c, frame);
  if (!frame.held_out.empty())
    label(c, "held out").text(frame.held_out).line();
  draw_tokens(c, frame);
  draw_cards(c, frame);
  draw_staleness(c, frame);
  draw_actors(c, frame);
  return c.take();
}

std::string render_line(const Frame& f) {
  std::string busy;
  for (const CardFrame& card : f.cards) {
    if (f.cards.size() <= kMostCards)
      busy += fmt::format("{}{:.0f}", busy.empty() ? "" : "/", busy_of(card) * 100);
  }
  const std::int64_t oldest = f.staleness.empty() ? 0 : f.staleness.rbegin()->first;
  return fmt::format(
      "{:>8} step {}/{} reward {} tokens/s raw {} trained {} effective {} busy% {} slots% {:.0f} "
      "staleness "
      "{:.2f} "
      "(max {}/{}) groups {}+{}+{} left {}{}",
      clock_text(f.elapsed),
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

namespace {

/// What a simulated run used, in three lines.
void draw_usage(Canvas& c, const orchestrator::Summary& s) {
  if (s.mfu) {
    label(c, "MFU").text(fmt::format("{:.1f} %", s.mfu->mfu * 100), kTitle);
    for (const auto& [role, mfu] : s.mfu->roles) {
      c.text(fmt::format("   {} {:.1f} % ({:.1f} % while busy)",
                         name_of(role),
                         mfu.mfu * 100,
                         mfu.while_busy * 100),
             kLabel);
    }
    c.line();
  }
  if (s.memory) {
    label(c, "memory");
    const auto gb = [](std::int64_t bytes) { return static_cast<double>(bytes) / 1e9; };
    for (const auto& [role, memory] : *s.memory) {
      figure(c,
             name_of(role),
             fmt::format("{:.1f} of {:.1f} GB",
                         gb(memory.device.peak_bytes),
                         gb(memory.device.capacity_bytes)));
    }
    c.text("per device", kLabel).line();
  }
  if (s.network) {
    label(c, "network");
    for (const orchestrator::PlaneSummary& plane : s.network->planes) {
      if (plane.bytes > 0)
        figure(c, plane.plane, fmt::format("{:.2f} %", plane.share * 100));
    }
    c.text("of bandwidth", kLabel).line();
  }
}

void draw_troubles(Canvas& c, const orchestrator::Summary& s) {
  if (s.wasted_tokens == 0 && s.restarts.empty() && s.groups.responses_failed == 0)
    return;
  label(c, "trouble");
  if (s.lies > 0)
    figure(c, "lies", std::to_string(s.lies));
  figure(c, "restarts", std::to_string(s.restarts.size()));
  figure(c, "responses failed", grouped(static_cast<std::int64_t>(s.groups.responses_failed)));
  figure(c, "tokens wasted", grouped(s.wasted_tokens));
  c.line();
}

}  // namespace

std::string render_closing(const orchestrator::Summary& s,
                           std::string_view run_dir,
                           std::string_view trace,
                           std::size_t width,
                           Colours colours) {
  Canvas c(std::max<std::size_t>(width, 20), colours);
  const auto reward = [](const std::optional<double>& value) {
    return value ? fmt::format("{:.3f}", *value) : std::string("-");
  };
  c.line();
  c.to(kIndent).text(s.ok        ? "✔ finished"
                     : s.stopped ? "■ stopped"
                                 : "✘ failed",
                     s.ok ? kGood : kBad);
  c.text(fmt::format(" after {} updates in {}", s.steps, clock_text(from_seconds(s.wall_s))))
      .line();
  if (!s.reason.empty())
    label(c, "reason").text(s.reason, kBad).line();
  label(c, "reward").text(reward(s.reward.first)).text(" → ", kLabel);
  c.text(reward(s.reward.last), kTitle);
  c.text(fmt::format("   best {}", reward(s.reward.best)), kLabel).line();
  if (s.evaluation) {
    const auto& [last, best] = std::pair(s.evaluation->points.back(), s.evaluation->best);
    label(c, "held out").text(held_out_text(last.step, last.pass_1, best.step, best.pass_1)).line();
  }
  label(c, "tokens/s");
  figure(c, "raw", short_number(s.tokens.generated_per_s));
  figure(c, "trained", short_number(s.tokens.trained_per_s));
  figure(c, "effective", short_number(s.tokens.effective_per_s));
  figure(c, "trained per card", short_number(s.tokens.trained_per_s_per_card));
  c.line();
  label(c, "cards").text(percent(s.utilization.busy), kTitle).text(" busy", kLabel);
  for (const auto& [state, wait] : main_waits(s)) {
    const std::string text = fmt::format(", {} {}{}",
                                         name_of(state),
                                         percent(wait.share),
                                         wait.on.empty() ? "" : " (" + wait.on + ")");
    if (wait.share < 0.02 || c.room() < display_width(text))
      break;
    c.text(text, kFaint);
  }
  c.line();
  label(c, "slots").text(percent(s.slots.while_serving), kTitle);
  c.text(fmt::format(" of {} held a response while their engines had any, {} of the wall",
                     grouped(s.slots.slots),
                     percent(s.slots.occupancy)),
         kLabel)
      .line();
  draw_usage(c, s);
  label(c, "staleness").text(fmt::format("max {}", s.staleness.max), kTitle);
  c.text(fmt::format(" of {} allowed, mean {:.2f}", s.staleness.bound, s.staleness.mean), kLabel)
      .line();
  draw_troubles(c, s);
  label(c, "run").text(run_dir, kAccent).line();
  label(c, "").text(
      fmt::format("{} opens in ui.perfetto.dev; temper report RUN, temper audit RUN", trace),
      kFaint);
  c.line();
  return c.take();
}

}  // namespace temper::cli
