#include "orchestrator/metrics/report.hpp"

#include "core/text/numbers.hpp"
#include "orchestrator/metrics/metric_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace temper::orchestrator {
namespace {

constexpr std::size_t kMostWaits = 8;
constexpr std::size_t kMostPoints = 12;

std::string count_text(std::int64_t n) {
  std::string digits = std::to_string(n);
  const std::ptrdiff_t sign = n < 0 ? 1 : 0;
  for (std::ptrdiff_t i = std::ssize(digits) - 3; i > sign; i -= 3)
    digits.insert(static_cast<std::size_t>(i), 1, ',');
  return digits;
}

std::string count_text(double value) {
  return count_text(std::int64_t{std::llround(value)});
}

/// Three significant digits: "0.0123", "12.3", "12,345".
std::string amount_text(double value) {
  constexpr double kWhole = 1000;
  return value < kWhole ? fmt::format("{:.3g}", value) : count_text(value);
}

std::string optional_text(const std::optional<double>& value) {
  return value ? fmt::format("{:.3f}", *value) : "-";
}

/// "12.34 s", or in hours for long times: "85.16 h".
std::string time_text(double s) {
  constexpr double kHour = 3600;
  return s < kHour ? fmt::format("{:.2f} s", s) : fmt::format("{:.2f} h", s / kHour);
}

std::string tail_text(const TailSummary& t) {
  return fmt::format("{:5.1f} % of the card time for the last tenth of a batch: {} idle, {} decode",
                     t.share * 100,
                     time_text(t.waits_s),
                     time_text(t.decode_s));
}

/// Lines of a text page in two columns: label and figures.
class Page {
 public:
  template <class... Args>
  void line(std::string_view what, fmt::format_string<Args...> format, Args&&... args) {
    text_ += fmt::format("  {:<12} ", what);
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
  }
  void title(std::string_view text) { text_ += fmt::format("\n{}\n", text); }
  void first_line(std::string_view text) { text_ += fmt::format("{}\n", text); }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

void write_cards(Page& page, const Summary& s) {
  const UtilizationSummary& u = s.utilization;
  const SlotSummary& slots = s.slots;
  page.title("cards");
  const auto states = [](const auto& shares) {
    std::string text;
    for (const auto& [state, part] : shares) {
      if (part >= 0.0005)
        text += fmt::format("  {} {:.1f} %", name_of(state), part * 100);
    }
    return text;
  };
  page.line("use", "{}", use_text(s));
  page.line("all", "{:5.1f} % busy {}", u.busy * 100, states(u.states));
  page.line(
      "slots",
      "{:5.1f} % of {} held a response while their engines had any, {:.1f} % of the wall time",
      slots.while_serving * 100,
      count_text(slots.slots),
      slots.occupancy * 100);
  if (s.tail.s > 0)
    page.line("tail", "{}", tail_text(s.tail));
  const double wall = static_cast<double>(u.wall_ns) / 1e9;
  for (std::size_t i = 0; i < u.per_card.size();) {
    const CardSummary& card = u.per_card[i];
    std::size_t end = i + 1;  // Neighbors with equal figures share a line.
    while (end < u.per_card.size() && u.per_card[end].states_ns == card.states_ns &&
           u.per_card[end].host == card.host)
      ++end;
    std::map<actors::CardState, double> shares;
    for (const auto& [state, time] : card.states_s)
      shares[state] = wall > 0 ? time / wall : 0;
    page.line(end - i == 1 ? fmt::format("card {}", card.card)
                           : fmt::format("{}-{}", card.card, u.per_card[end - 1].card),
              "{:5.1f} % busy {}{}",
              card.busy * 100,
              states(shares),
              card.host.empty() ? "" : "  on " + card.host);
    i = end;
  }
  page.line("",
            "{} with neither generation nor training on any card",
            time_text(u.no_generation_or_training_s));
}

void write_waits(Page& page, const Summary& s) {
  if (s.waits.empty())
    return;
  page.title("why cards waited (time of all cards; longest wait of a card)");
  for (std::size_t i = 0; i < s.waits.size() && i < kMostWaits; ++i) {
    const WaitSummary& w = s.waits[i];
    page.line(name_of(w.role),
              "{:<12} {:>11} {:5.1f} %   {}{}",
              name_of(w.state),
              time_text(w.s),
              w.share * 100,
              w.on.empty() ? "work assigned, not started" : w.on,
              w.longest_s > 0
                  ? fmt::format("   ({} at {})", time_text(w.longest_s), time_text(w.longest_at_s))
                  : "");
  }
}

std::string high_water_text(const HighWater& h) {
  const auto gb = [](std::int64_t bytes) { return static_cast<double>(bytes) / 1e9; };
  return fmt::format("{:.1f} of {:.1f} GB, {:.1f} predicted",
                     gb(h.peak_bytes),
                     gb(h.capacity_bytes),
                     gb(h.predicted_bytes));
}

void write_usage(Page& page, const Summary& s) {
  if (s.engines && s.engines->prefill_devices > 0) {
    page.title("instances of the engines (busy share of the wall time)");
    page.line("prefill",
              "{:5.1f} %   {} devices of each engine",
              s.engines->prefill * 100,
              s.engines->prefill_devices);
    page.line("decode",
              "{:5.1f} %   {:.1f} ms per output token",
              s.engines->decode * 100,
              s.engines->token_s * 1e3);
  }
  if (s.mfu) {
    page.title("model FLOP utilization (of the wall time; while busy)");
    page.line("all", "{:5.1f} %", s.mfu->mfu * 100);
    for (const auto& [role, mfu] : s.mfu->roles)
      page.line(name_of(role), "{:5.1f} %   {:5.1f} %", mfu.mfu * 100, mfu.while_busy * 100);
  }
  if (s.memory) {
    page.title("memory high-water marks, of a device and its share of the host");
    for (const auto& [role, memory] : *s.memory) {
      page.line(name_of(role),
                "{}   host {}",
                high_water_text(memory.device),
                high_water_text(memory.host));
    }
  }
  if (s.network) {
    page.title("network planes (bytes per step; mean share of the bandwidth; by role)");
    for (const PlaneSummary& plane : s.network->planes) {
      if (plane.bytes == 0)
        continue;
      std::string roles;
      for (const auto& [role, bytes] : plane.roles) {
        if (bytes > 0) {
          const double share = static_cast<double>(bytes) / static_cast<double>(plane.bytes);
          roles +=
              fmt::format("   {} {}", name_of(role), bytes_text(share * plane.bytes_per_update));
        }
      }
      page.line(plane.plane,
                "{:>9}  {:6.2f} % {}",
                bytes_text(plane.bytes_per_update),
                plane.share * 100,
                roles);
    }
  }
  if (s.tensors)
    page.line("tensors", "{}", tensors_text(*s.tensors));
}

void write_troubles(Page& page, const Summary& s) {
  if (s.groups.failed > 0) {
    page.title("failures");
    page.line("groups", "{:>14}   last: {}", s.groups.failed, s.groups.last_failure);
  }
  if (s.lies > 0) {
    page.title("protocol violations");
    page.line("messages", "{:>14}   rejected; their senders were restarted", s.lies);
  }
  if (!s.restarts.empty()) {
    page.title("restarts");
    for (const RestartSummary& r : s.restarts)
      page.line(name_of(r.kind), "{:9.2f} s  {}  {}", r.at_s, r.actor, r.reason);
  }
  // An engine with exclusive cards only allocates its KV cache once, which is not a role switch.
  const auto changes_roles = [](const auto& action) {
    return action.first != actors::SwitchAction::AllocateKv;
  };
  if (std::ranges::none_of(s.switches.actions, changes_roles))
    return;
  page.title("role switches");
  for (const auto& [action, t] : s.switches.actions) {
    page.line(name_of(action),
              "      {:4} times  mean {:.4f} s  longest {:.4f} s  device -{} +{} B{}",
              t.count,
              t.mean_s,
              t.longest_s,
              count_text(t.device_bytes_freed),
              count_text(t.device_bytes_taken),
              t.refused > 0 ? fmt::format("  refused {}", t.refused) : "");
  }
}

void write_turns(Page& page, const SwitchesSummary& s, const PredictedStates& predicted) {
  if (s.count == 0 || s.states.empty())
    return;
  page.title("states of a role switch, all actors together (seconds)");
  page.line("", "{:>20} {:>8} {:>9} {:>9} {:>10}", "", "times", "mean", "longest", "predicted");
  for (const auto& [state, t] : s.states) {
    const auto before = predicted.find(state);
    page.line("",
              "{:>20} {:>8} {:>9.3f} {:>9.3f} {:>10}",
              state,
              t.count,
              t.mean_s,
              t.longest_s,
              before == predicted.end() ? "-" : fmt::format("{:.3f}", before->second));
  }
}

void write_evaluation(Page& page, const EvaluationSummary& e) {
  page.title(fmt::format(
      "evaluation ({} problems, {} {} each; [95 % interval]; {:.2f} % of the card time)",
      e.problems,
      e.samples,
      e.samples == 1 ? "response" : "responses",
      e.share * 100));
  const auto point = [&](std::string_view what,
                         const EvaluationPoint& p,
                         const std::string& remark = {}) {
    page.line(what,
              "version {:>6}   pass@1 {:.3f} [{:.2f}, {:.2f}]{}   reward {:.3f}{}{}",
              p.step,
              p.pass_1,
              p.pass_1_low,
              p.pass_1_high,
              e.samples > 1 ? fmt::format("   pass@{} {:.3f}", e.samples, p.pass_k) : std::string(),
              p.reward,
              p.failed > 0 ? fmt::format("   {} failed", p.failed) : std::string(),
              remark);
  };
  // About kMostPoints of them, evenly spaced, always including the last.
  const std::size_t step = (e.points.size() + kMostPoints - 1) / kMostPoints;
  for (std::size_t i = (e.points.size() - 1) % step; i < e.points.size(); i += step)
    point("", e.points[i]);
  const auto alike = std::ranges::count(e.points, true, &EvaluationPoint::within_noise) - 1;
  point("best",
        e.best,
        alike > 0
            ? fmt::format("   within noise of {} of the {} others", alike, e.points.size() - 1)
            : std::string());
}

/// One line per group of metrics.
void write_last_step(Page& page, const Summary& s) {
  std::map<std::string_view, std::string> figures;
  const auto add = [&](std::string_view group, std::string_view label, double v) {
    figures[group] += fmt::format(
        "   {} {}", label, std::abs(v) < 1000 ? fmt::format("{:.4g}", v) : count_text(v));
  };
  for (const Metric& metric : metric_table()) {
    const bool family = metric.name.ends_with("/*");
    const std::string name(metric.name.substr(0, metric.name.size() - (family ? 1 : 0)));
    for (auto it = s.last_step.lower_bound(name); it != s.last_step.end(); ++it) {
      if (family ? !it->first.starts_with(name) : it->first != name)
        break;
      add(metric.place.group,
          family ? std::string_view(it->first).substr(name.size()) : metric.place.label,
          it->second);
    }
  }
  figures.erase("");
  if (!figures.empty())
    page.title("last step");
  for (const Metric& metric : metric_table()) {  // Groups in the order of their first rows.
    if (const auto group = figures.extract(metric.place.group)) {
      const std::string unit = metric.unit.empty() ? "" : fmt::format(", {}", metric.unit);
      page.line("", "{:<33}{}", fmt::format("{}{}", group.key(), unit), group.mapped());
    }
  }
}

void write_judges(Page& page, const actors::JudgeUsage& j) {
  const auto text = [](std::uint64_t count) {
    return count_text(static_cast<std::int64_t>(count));
  };
  page.title("judges (of the whole run)");
  page.line("requests",
            "{:>14}   {} of them retries   {} scores from the cache",
            text(j.requests),
            text(j.retries),
            text(j.cached));
  page.line("tokens", "{:>14}   {} of replies", text(j.input_tokens), text(j.output_tokens));
  if (j.cost > 0)
    page.line("cost", "{:>14.4f}", j.cost);
}

void write_tokens(Page& page, const Summary& s) {
  page.title("tokens (of the whole run; generated: sampled; trained and effective: with prompts)");
  page.line("generated",
            "{:>14}   {:>10}/s",
            count_text(s.tokens.generated),
            count_text(s.tokens.generated_per_s));
  page.line("trained",
            "{:>14}   {:>10}/s   {}/s per card",
            count_text(s.tokens.trained),
            count_text(s.tokens.trained_per_s),
            count_text(s.tokens.trained_per_s_per_card));
  page.line("effective",
            "{:>14}   {:>10}/s",
            count_text(s.tokens.effective),
            count_text(s.tokens.effective_per_s));
  if (starting_matters(s))
    page.line("start", "{:>14}   of these {}", time_text(s.start_s), time_text(s.wall_s));
  page.line("wasted",
            "{:>14}   {} responses failed, {} lost their tensors",
            count_text(s.wasted_tokens),
            count_text(static_cast<std::int64_t>(s.groups.responses_failed)),
            count_text(static_cast<std::int64_t>(s.groups.responses_lost)));
  page.line("lengths",
            "mean {:.1f}   p50 {}   p99 {}   max {}",
            s.lengths.mean,
            s.lengths.p50,
            s.lengths.p99,
            s.lengths.max);
}

}  // namespace

std::string cost_text(const CostSummary& c) {
  const auto with_tokens = [](std::string text, std::optional<double> tokens, const char* unit) {
    if (tokens)
      text += fmt::format(" ({} trained tokens per {})", short_number(*tokens), unit);
    return text;
  };
  std::string text;
  if (c.price)
    text = with_tokens("price " + amount_text(*c.price), c.tokens_per_price, "unit");
  if (c.kwh) {
    text += text.empty() ? "" : "   ";
    text += with_tokens("energy " + amount_text(*c.kwh) + " kWh", c.tokens_per_kwh, "kWh");
  }
  return text;
}

bool starting_matters(const Summary& s) {
  constexpr double kShare = 0.05;
  return s.start_s >= kShare * s.wall_s && s.start_s > 0;
}

std::string use_text(const Summary& s) {
  std::string text = fmt::format("{:.0f} % busy", s.utilization.busy * 100);
  if (s.mfu)
    text += fmt::format("   MFU {:.1f} %", s.mfu->mfu * 100);
  if (s.slots.slots > 0)
    text += fmt::format("   slots {:.0f} % filled", s.slots.while_serving * 100);
  constexpr double kBusy = 0.8, kLittleMfu = 0.3, kFewSlots = 0.5;
  const bool little = (s.mfu && s.mfu->mfu < kLittleMfu) ||
                      (s.slots.slots > 0 && s.slots.while_serving < kFewSlots);
  return s.utilization.busy >= kBusy && little ? text + "   (busy: any work, however little)"
                                               : text;
}

std::string learning_text(const Summary& s) {
  return fmt::format("reward {} -> {} in {:.2f} simulated hours",
                     optional_text(s.reward.first),
                     optional_text(s.reward.last),
                     s.wall_s / 3600);
}

std::string summary_text(const Summary& s, const PredictedStates& predicted) {
  Page page;
  page.first_line(fmt::format("{}: {} after {} steps, {}{}{}",
                              s.name.empty() ? "run" : s.name,
                              s.ok        ? "finished"
                              : s.stopped ? "stopped"
                              : !s.ended  ? "unfinished"
                                          : "FAILED",
                              s.steps,
                              time_text(s.wall_s),
                              s.simulated ? " of simulated time" : "",
                              s.reason.empty() ? "" : " (" + s.reason + ")"));
  page.title("learning");
  page.line("reward",
            "first {}   last {}   best {}   (means over {} steps)",
            optional_text(s.reward.first),
            optional_text(s.reward.last),
            optional_text(s.reward.best),
            RewardHistory::kWindow);
  if (s.simulated && s.reward.first)
    page.line("", "{}", learning_text(s));
  page.line("staleness",
            "bound {}   max {}   mean {:.3f}   per token {:.3f}",
            s.staleness.bound,
            s.staleness.max,
            s.staleness.mean,
            s.staleness.token_mean);
  std::string histogram;
  for (const auto& [age, groups] : s.staleness.histogram)
    histogram += fmt::format("{}: {}   ", age, count_text(static_cast<std::int64_t>(groups)));
  page.line("groups",
            "by age  {}failed: {}   filtered: {}   evicted: {}",
            histogram,
            s.groups.failed,
            s.groups.filtered,
            s.groups.evicted);
  page.line("publishing",
            "mean {:.4f} s   longest {:.4f} s from the end of a step to the engine",
            s.staleness.publish_lag_mean_s,
            s.staleness.publish_lag_max_s);
  if (s.evaluation)
    write_evaluation(page, *s.evaluation);
  write_last_step(page, s);
  if (s.judges)
    write_judges(page, *s.judges);
  write_tokens(page, s);
  if (s.cost)
    page.line("cost", "{}", cost_text(*s.cost));
  write_cards(page, s);
  write_waits(page, s);
  write_usage(page, s);
  write_troubles(page, s);
  write_turns(page, s.switches, predicted);
  page.title(
      fmt::format("log {}   checkpoints {}   seed {}", s.log_hash, s.checkpoints.saved, s.seed));
  return page.take();
}

}  // namespace temper::orchestrator
