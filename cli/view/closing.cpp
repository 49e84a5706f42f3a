// The summary that the terminal shows at the end of a run.
#include "cli/view/parts.hpp"
#include "cli/view/render.hpp"
#include "core/text/numbers.hpp"
#include "orchestrator/metrics/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace temper::cli {
namespace {

using actors::CardState;

struct MainWait {
  double share = 0;
  std::string on;  ///< Cause of the longest of these waits.
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
  // Actors report it, so it has no cause of the scheduler.
  if (const auto tools = s.utilization.states.find(CardState::WaitTools);
      tools != s.utilization.states.end())
    waits.push_back({CardState::WaitTools, {tools->second, ""}});
  std::stable_sort(waits.begin(), waits.end(), [](const auto& a, const auto& b) {
    return a.second.share > b.second.share;
  });
  return waits;
}

/// The wait states of the cards, the largest share first, as many as fit.
void draw_waits(Canvas& c, const orchestrator::Summary& s) {
  bool any = false;
  for (const auto& [state, wait] : main_waits(s)) {
    const std::string text = fmt::format("{}{} {}{}",
                                         any ? ", " : "",
                                         name_of(state),
                                         percent(wait.share),
                                         wait.on.empty() ? "" : " (" + wait.on + ")");
    if (wait.share < 0.02)
      break;
    if (!std::exchange(any, true))
      label(c, "waits");
    else if (c.room() < display_width(text))
      break;
    c.text(text, kFaint);
  }
  if (any)
    c.line();
}

/// MFU, memory and network of a simulated run, in three lines.
void draw_usage(Canvas& c, const orchestrator::Summary& s) {
  if (s.mfu) {
    label(c, "MFU");
    for (const auto& [role, mfu] : s.mfu->roles) {
      remark(c,
             fmt::format("{} {:.1f} % ({:.1f} % while busy)   ",
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
    remark(c, "per device", kLabel);
    c.line();
  }
  if (s.network) {
    label(c, "network");
    for (const orchestrator::PlaneSummary& plane : s.network->planes) {
      if (plane.bytes > 0)
        figure(c, plane.plane, fmt::format("{:.2f} %", plane.share * 100));
    }
    remark(c, "of bandwidth", kLabel);
    c.line();
  }
}

void draw_troubles(Canvas& c, const orchestrator::Summary& s) {
  // A resume by the user is no trouble.
  const auto restarts = std::ranges::count_if(
      s.restarts, [](const auto& r) { return r.kind != orchestrator::Restart::Kind::Resume; });
  if (s.wasted_tokens == 0 && restarts == 0 && s.groups.responses_failed == 0)
    return;
  label(c, "trouble");
  if (s.lies > 0)
    figure(c, "protocol violations", std::to_string(s.lies));
  figure(c, "restarts", std::to_string(restarts));
  figure(c, "responses failed", grouped(static_cast<std::int64_t>(s.groups.responses_failed)));
  figure(c, "tokens wasted", grouped(s.wasted_tokens));
  c.line();
}

}  // namespace

std::string render_closing(const orchestrator::Summary& s,
                           const ClosingFacts& closing,
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
  c.text(fmt::format(" after {} steps in {}", s.steps, clock_text(from_seconds(s.wall_s)))).line();
  if (!s.reason.empty())
    label(c, "reason").text(s.reason, kBad).line();
  label(c, "reward").text(reward(s.reward.first)).text(" → ", kLabel);
  c.text(reward(s.reward.last), kTitle);
  c.text(fmt::format("   best {}", reward(s.reward.best)), kLabel);
  c.text(closing.drawn
             ? std::string("   (random values: no model is trained)")
             : fmt::format("   (means over {} steps)", orchestrator::RewardHistory::kWindow),
         kLabel)
      .line();
  if (s.evaluation) {
    const auto& [last, best] = std::pair(s.evaluation->points.back(), s.evaluation->best);
    label(c, "held out")
        .text(held_out_text(
            {last.step, last.pass_1}, {best.step, best.pass_1}, s.evaluation->problems))
        .line();
  }
  label(c, "tokens/s");
  figure(c, "raw", short_number(s.tokens.generated_per_s));
  figure(c, "trained", short_number(s.tokens.trained_per_s));
  figure(c, "effective", short_number(s.tokens.effective_per_s));
  per_card(c, s.tokens.trained_per_s_per_card);
  c.line();
  label(c, "");
  remark(c, "over the whole run; raw: sampled tokens, trained: with prompts", kFaint);
  if (orchestrator::starting_matters(s)) {
    remark(c, fmt::format("; startup took {}", clock_text(from_seconds(s.start_s))), kFaint);
  }
  c.line();
  label(c, "cards").text(orchestrator::use_text(s), kTitle).line();
  draw_waits(c, s);
  draw_usage(c, s);
  if (s.cost)
    label(c, "cost").text(orchestrator::cost_text(*s.cost)).line();
  label(c, "staleness").text(fmt::format("max {}", s.staleness.max), kTitle);
  c.text(fmt::format(" of {} allowed, mean {:.2f}", s.staleness.bound, s.staleness.mean), kLabel)
      .line();
  draw_troubles(c, s);
  // Not cut: the terminal wraps these lines, so that they can be copied.
  Canvas whole(closing.run_dir.size() + closing.trace.size() + 100, colours);
  label(whole, "run").text(closing.run_dir, kAccent).line();
  label(whole, "").text(closing.trace + " (open it in ui.perfetto.dev)", kFaint).line();
  for (const char* command : {"report", "audit"})
    label(whole, "").text(fmt::format("temper {} {}", command, closing.run_dir), kFaint).line();
  return c.take() + whole.take();
}

}  // namespace temper::cli
