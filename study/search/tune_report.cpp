#include "study/search/tune_report.hpp"

#include "core/text/numbers.hpp"
#include "core/text/svg_plot.hpp"
#include "core/text/table.hpp"
#include "study/search/tune_objective.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace temper::study {
namespace {

constexpr std::size_t kShown = 5;

std::string thousands(const std::optional<double>& tokens_per_s) {
  return tokens_per_s ? thousands_text(*tokens_per_s, 1) : "-";
}

std::string cell(const std::optional<double>& value, const char* format) {
  return value ? fmt::format(fmt::runtime(format), *value) : "-";
}

std::string time_text(double seconds) {
  return seconds < 3600 ? fmt::format("{:.1f} s", seconds)
                        : fmt::format("{:.1f} h", seconds / 3600);
}

std::string cards_text(const TuneRow& r) {
  std::string text = fmt::format("{} R", r.rollout_cards);
  if (r.reference_cards > 0)
    text += fmt::format(" + {} F", r.reference_cards);
  return text + fmt::format(" + {} T", r.trainer_cards);
}

/// When cards change role, for modes whose placements differ in that.
std::string turns_text(const TuneRow& r) {
  const auto mode = from_name<orchestrator::PlacementMode>(r.mode);
  if (mode && traits_of(*mode).lends())
    return "lends " + r.lending;
  return !mode || !traits_of(*mode).shares || r.eta == 0
             ? "-"
             : fmt::format("back at {:g}", r.return_share);
}

std::vector<std::string> line(const TuneRow& r, std::string name, TuneObjective objective) {
  return {std::move(name),
          r.mode,
          fmt::format("{:g}", r.eta),
          r.vary,
          cards_text(r),
          fmt::format("{} x {}", r.engines, r.slots),
          turns_text(r),
          r.rollout_layout,
          r.trainer_layout,
          r.reference_layout,
          thousands(r.closed_tokens_per_s),
          thousands(r.sampled_tokens_per_s),
          thousands(r.tokens_per_s),
          cell(r.seconds_per_update, r.seconds_per_update < 10 ? "{:.3f}" : "{:.0f}"),
          cell(r.staleness, "{:.2f}"),
          r.busy ? fmt::format("{:.0f} %", *r.busy * 100) : "-",
          thousands(r.tokens_per_price),
          thousands(r.tokens_per_kwh),
          r.objective && !more_is_better(objective) ? time_text(*r.objective) : "-",
          r.hours_to_reward && objective != TuneObjective::Reward
              ? time_text(*r.hours_to_reward * 3600)
              : "-"};
}

/// Drops columns that are empty in every row.
std::vector<std::vector<std::string>> without_empty(std::vector<std::vector<std::string>> table) {
  for (std::size_t column = table.front().size(); column-- > 1;) {
    const bool empty = std::all_of(table.begin() + 1, table.end(), [&](const auto& row) {
      return row[column].empty() || row[column] == "-";
    });
    if (!empty)
      continue;
    for (auto& row : table)
      row.erase(row.begin() + static_cast<std::ptrdiff_t>(column));
  }
  return table;
}

/// The rate and cards behind a gain in price or energy.
std::string cards_note(const TuneRow& best, const TuneRow& given, TuneObjective objective) {
  if (!counts_costs(objective))
    return "";
  return fmt::format(", at x{:.2f} of its trained tokens/s on {} of {} cards",
                     *best.tokens_per_s / *given.tokens_per_s,
                     best.total_cards,
                     given.total_cards);
}

std::string gain_text(const TuneResult& t) {
  const TuneRow& best = t.tried[t.best].row;
  const TuneRow& given = t.tried[t.given].row;
  if (t.best == t.given)
    return "no configuration that was tried is better than the given one\n";
  if (!given.tokens_per_s)
    return fmt::format("the given configuration cannot run: {}\n", given.reason);
  if (more_is_better(t.objective)) {
    return fmt::format("{} trained {}, x{:.2f} of the given configuration ({}){}\n",
                       thousands(best.objective),
                       unit_of(t.objective),
                       *best.objective / *given.objective,
                       thousands(given.objective),
                       cards_note(best, given, t.objective));
  }
  const std::string goal = t.objective == TuneObjective::Steps ? "all updates" : "the reward";
  if (!given.objective)
    return fmt::format("{} to {}\n", time_text(*best.objective), goal);
  return fmt::format("{} to {}, x{:.2f} of the given configuration ({})\n",
                     time_text(*best.objective),
                     goal,
                     *best.objective / *given.objective,
                     time_text(*given.objective));
}

/// The rate of a candidate, from its longest run.
std::optional<double> rate_of(const TuneRow& r) {
  return r.tokens_per_s ? r.tokens_per_s : r.sampled_tokens_per_s;
}

std::string plan_text(const TuneRow& r) {
  return fmt::format("{} at eta {:g}, {} trained tokens/s", r.mode, r.eta, thousands(rate_of(r)));
}

std::string_view best_text(TuneObjective objective) {
  return counts_costs(objective) ? "best" : "fastest";
}

/// States a tie, and which of the plans is advised.
std::string ties_text(const TuneResult& t) {
  if (t.ties.size() < 2)
    return "";
  const TuneRow& best = t.tried[t.best].row;
  std::string out = fmt::format(
      "a tie: {} plans are within {:.1f} % of the {}, the error of this search; the least "
      "stale of them is advised",
      t.ties.size(),
      100 * t.error,
      best_text(t.objective));
  if (t.best != t.fastest) {
    const TuneRow& fastest = t.tried[t.fastest].row;
    out += fmt::format(" (mean staleness {:.2f}; the {}: {}, {:.2f})",
                       *best.staleness,
                       best_text(t.objective),
                       plan_text(fastest),
                       *fastest.staleness);
  }
  return out + "\n";
}

/// The learning cost of the answer's mean staleness, by the curve; empty if the objective includes
/// it.
std::string age_text(const TuneResult& t) {
  const TuneRow& best = t.tried[t.best].row;
  if (t.objective == TuneObjective::Reward)
    return fmt::format("time to the reward of {}\n", t.curve->source);
  if (!t.curve) {
    return fmt::format(
        "mean staleness {:.2f}; its cost in learning is not included; add it with --curve FILE\n",
        *best.staleness);
  }
  const auto updates = t.curve->updates(*best.staleness);
  if (!updates) {
    return fmt::format("mean staleness {:.2f}; {} does not cover it: the curve ends at {:.2f}\n",
                       *best.staleness,
                       t.curve->source,
                       t.curve->most_staleness());
  }
  const TuneRow* soonest = &best;
  for (const Candidate& c : t.tried) {
    if (c.row.reason.empty() && c.row.hours_to_reward &&
        *c.row.hours_to_reward < *soonest->hours_to_reward)
      soonest = &c.row;
  }
  std::string out = fmt::format(
      "mean staleness {:.2f}: by {} x{:.2f} the updates of the least staleness, {} to its reward",
      *best.staleness,
      t.curve->source,
      *updates / t.curve->points.front().updates,
      time_text(*best.hours_to_reward * 3600));
  if (soonest != &best) {
    out += fmt::format("; the soonest of all runs: {}, {} (search for it with --objective reward)",
                       plan_text(*soonest),
                       time_text(*soonest->hours_to_reward * 3600));
  }
  return out + "\n";
}

}  // namespace

std::vector<TuneRow> tune_rows(const TuneResult& tuned) {
  std::vector<TuneRow> rows;
  for (const Candidate& c : tuned.tried)
    rows.push_back(c.row);
  return rows;
}

std::string tune_text(const TuneResult& t) {
  std::vector<std::vector<std::string>> table{{"",
                                               "mode",
                                               "eta",
                                               "",
                                               "cards",
                                               "engines x slots",
                                               "turns",
                                               "rollout",
                                               "trainer",
                                               "reference",
                                               "closed form",
                                               "sampled",
                                               "tokens/s",
                                               "s/update",
                                               "staleness",
                                               "busy",
                                               "tokens/price",
                                               "tokens/kWh",
                                               "to the goal",
                                               "to the curve's reward"}};
  if (t.best != t.given)
    table.push_back(
        line(t.tried[t.best].row, t.best == t.fastest ? "best" : "advised", t.objective));
  for (std::size_t i = 0; i < t.tried.size() && table.size() <= kShown; ++i) {
    if (i != t.given && i != t.best && t.tried[i].row.tokens_per_s)
      table.push_back(line(t.tried[i].row, t.tried[i].row.verdict, t.objective));
  }
  table.push_back(line(t.tried[t.given].row, "as given", t.objective));
  std::string out = bar_table(without_empty(std::move(table))) + "\n" + gain_text(t);
  out += ties_text(t) + age_text(t);
  for (std::size_t i = 0; i < t.fastest; ++i) {
    out += fmt::format("better but not chosen: {} at eta {:g}: {}\n",
                       t.tried[i].row.mode,
                       t.tried[i].row.eta,
                       t.tried[i].row.reason);
  }
  out +=
      fmt::format("screened {} placements, {} fit; {} sampled runs", t.screened, t.fitting, t.runs);
  if (t.closed) {
    out += fmt::format(
        "; closed form against these: {} {:.1f} % mean error, rank correlation "
        "{:.2f}; mean staleness differs by {:.2f}",
        counts_costs(t.objective) ? unit_of(t.objective) : "tokens/s",
        t.closed->error * 100,
        t.closed->ranks,
        t.closed->staleness);
  }
  out += t.stopped ? "\nstopped early: this is the best so far\n" : "\n";
  return out;
}

std::string tune_svg(const TuneResult& tuned) {
  std::set<double> etas;
  std::set<std::string> modes;
  for (const Candidate& c : tuned.tried) {
    if (!rate_of(c.row))
      continue;
    etas.insert(c.row.eta);
    modes.insert(c.row.mode);
  }
  Plot plot;
  plot.title = "Best of each placement";
  plot.x_label = "staleness bound";
  plot.x.assign(etas.begin(), etas.end());
  const bool costs = counts_costs(tuned.objective);
  const std::string_view unit = costs ? unit_of(tuned.objective) : "tokens/s";
  plot.panels = {{fmt::format("trained {}, thousands", unit), {}, {}},
                 {"closed form over run, %", {}, {}}};
  const auto rate_of = [&](const TuneRow& r) {
    if (!costs)
      return study::rate_of(r);
    return r.objective ? r.objective : r.sampled_objective;
  };
  for (const std::string& mode : modes) {
    Plot::Line rate{mode, {}}, ratio{mode, {}};
    for (const double eta : plot.x) {
      const TuneRow* best = nullptr;
      for (const Candidate& c : tuned.tried) {
        if (c.row.mode == mode && c.row.eta == eta && rate_of(c.row) &&
            (best == nullptr || *rate_of(c.row) > *rate_of(*best)))
          best = &c.row;
      }
      rate.values.push_back(best ? std::optional(*rate_of(*best) / 1e3) : std::nullopt);
      const auto closed =
          best ? (costs ? best->closed_objective : best->closed_tokens_per_s) : std::nullopt;
      ratio.values.push_back(closed ? std::optional(*closed / *rate_of(*best) * 100)
                                    : std::nullopt);
    }
    plot.panels[0].lines.push_back(std::move(rate));
    plot.panels[1].lines.push_back(std::move(ratio));
  }
  return to_svg(plot);
}

}  // namespace temper::study
