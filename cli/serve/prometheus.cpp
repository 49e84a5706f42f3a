#include "cli/serve/prometheus.hpp"

#include "orchestrator/metrics/metric_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace temper::cli {
namespace {

/// Groups samples by metric, as the text format requires.
class Exposition {
 public:
  void add(const std::string& name, const std::string& labels, double value) {
    std::string& lines = metrics_[name];
    lines += fmt::format("{}{{{}}} {}\n", name, labels, text(value));
  }
  std::string take(const std::map<std::string, std::string>& help) const {
    std::string out;
    for (const auto& [name, lines] : metrics_) {
      if (const auto it = help.find(name); it != help.end())
        out += fmt::format("# HELP {} {}\n", name, it->second);
      out += fmt::format(
          "# TYPE {} {}\n{}", name, name.ends_with("_total") ? "counter" : "gauge", lines);
    }
    return out;
  }

 private:
  static std::string text(double value) {
    if (std::isnan(value))
      return "NaN";
    if (std::isinf(value))
      return value > 0 ? "+Inf" : "-Inf";
    return fmt::format("{}", value);
  }
  std::map<std::string, std::string> metrics_;
};

std::string metric_name(std::string_view ours) {
  std::string name = "temper_" + std::string(ours);
  for (char& c : name) {
    if (std::string_view("/-.").find(c) != std::string_view::npos)
      c = '_';
  }
  // By convention, Prometheus names spell out units.
  if (const std::size_t at = name.find("_per_s"); at != std::string::npos)
    name.replace(at, 6, "_per_second");
  return name;
}

std::string label(std::string_view name, std::string_view value) {
  std::string out = fmt::format("{}=\"", name);
  for (const char c : value) {
    if (c == '\\' || c == '"')
      out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out + '"';
}

void add_live(Exposition& out, const Live& live, const std::string& run) {
  out.add("temper_steps_done_total", run, static_cast<double>(live.summary.steps));
  out.add("temper_steps_wanted", run, static_cast<double>(live.steps));
  const orchestrator::TokenSummary& tokens = live.summary.tokens;
  out.add("temper_tokens_generated_total", run, static_cast<double>(tokens.generated));
  out.add("temper_tokens_trained_total", run, static_cast<double>(tokens.trained));
  out.add("temper_tokens_effective_total", run, static_cast<double>(tokens.effective));
  out.add("temper_memory_bytes", run, static_cast<double>(live.health.memory_bytes));
  out.add("temper_disk_free_bytes", run, static_cast<double>(live.health.disk_free_bytes));
  for (const LiveActor& a : live.actors) {
    const std::string labels = run + "," + label("actor", a.name);
    out.add("temper_actor_load", labels, a.load);
    out.add("temper_actor_restarts", labels, a.restarts);
    if (a.capacity > 0)
      out.add("temper_actor_capacity", labels, a.capacity);
  }
  std::map<actors::CardState, double> shares;
  double cards = 0;
  for (const LiveCards& line : live.cards) {
    double n = 0;
    for (std::size_t i = 1; i < line.cards.size(); i += 2)
      n += line.cards[i];
    cards += n;
    for (const auto& [state, share] : line.recent)
      shares[state] += share * n;
  }
  for (const auto& [state, sum] : shares)
    out.add("temper_card_share", run + "," + label("state", name_of(state)), sum / cards);
  for (const auto& [kind, name] : EnumNames<orchestrator::AlarmKind>::value) {
    const auto raised = live.alarms_raised.find(kind);
    const auto times =
        raised == live.alarms_raised.end() ? 0.0 : static_cast<double>(raised->second);
    out.add("temper_alarms_total", run + "," + label("kind", name), times);
  }
}

}  // namespace

std::map<std::string, std::string> prometheus_metrics() {
  std::map<std::string, std::string> help{
      {"temper_up", "1 while the run is running."},
      {"temper_steps_done_total", "Completed steps."},
      {"temper_steps_wanted", "Configured number of steps."},
      {"temper_actor_load", "Responses that an actor currently holds."},
      {"temper_actor_capacity", "Maximum number of responses of an engine."},
      {"temper_actor_restarts", "Consecutive restarts of an actor."},
      {"temper_card_share",
       "Share of card time in a state, over all cards and the last ten seconds."},
      {"temper_alarms_total", "Alarms raised, by kind."},
      {"temper_memory_bytes", "Resident memory of the run's processes."},
      {"temper_disk_free_bytes", "Free space under the run's folder."},
      {"temper_tokens_generated_total", "Sampled tokens, including discarded ones."},
      {"temper_tokens_trained_total", "Prompt and response tokens of trained groups."},
      {"temper_tokens_effective_total", "Trained tokens without groups of equal rewards."}};
  for (const orchestrator::Metric& metric : orchestrator::metric_table()) {
    if (!metric.name.ends_with("/*"))
      help[metric_name(metric.name)] = metric.doc;
  }
  for (const auto& [state, name] : EnumNames<actors::CardState>::value)
    help[metric_name("states/" + std::string(name))] =
        fmt::format("Share of card time in state {} since the previous step.", name);
  return help;
}

std::string prometheus_text(std::span<const std::unique_ptr<RunFiles>> runs) {
  Exposition out;
  for (const std::unique_ptr<RunFiles>& files : runs) {
    const std::string run = label("run", files->id());
    out.add("temper_up", run, files->state() == RunState::Running ? 1 : 0);
    for (const auto& [name, value] : files->series().last())
      out.add(metric_name(name), run, value);
    if (files->live())
      add_live(out, *files->live(), run);
  }
  return out.take(prometheus_metrics());
}

}  // namespace temper::cli
