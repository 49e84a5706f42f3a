#include "orchestrator/config/check_command.hpp"

#include "core/json.hpp"
#include "core/yaml.hpp"
#include "orchestrator/config/load.hpp"
#include "orchestrator/config/placement.hpp"

#include <fmt/format.h>

#include <ostream>

namespace temper {
namespace {

/// The answer of `temper check --json`.
struct CheckReport {
  bool ok = false;
  std::vector<ConfigIssue> issues;
  std::optional<orchestrator::PipelineConfig> config;
  std::vector<orchestrator::ActorSpec> actors;
};

template <class V>
void describe(V& v, CheckReport& r) {
  v.field(1, "ok", r.ok);
  v.field(2, "issues", r.issues);
  v.field(3, "config", r.config);
  v.field(4, "actors", r.actors);
}

/// As comments, so that all of the output is a configuration again.
std::string card_map(const std::vector<orchestrator::ActorSpec>& slots) {
  std::string out = "\n# cards\n";
  for (const orchestrator::ActorSpec& slot : slots)
    out += fmt::format("#   {:<14} [{}]\n", slot.name, fmt::join(slot.cards, ", "));
  return out;
}

}  // namespace

template <class V>
void describe(V& v, ConfigIssue& i) {
  v.field(1, "location", i.location);
  v.field(2, "key", i.key);
  v.field(3, "message", i.message);
}

namespace orchestrator {

int run_check(const CheckOptions& options, std::ostream& out, std::ostream& err) {
  CheckReport report;
  Result<LoadedConfig> loaded = read_config(options.config, options.sets);
  if (!loaded) {
    report.issues.push_back({options.config, "", loaded.error().context});
  } else {
    report.issues = loaded->issues();
    report.config = loaded->config();
  }
  report.ok = report.issues.empty();
  if (report.ok)
    report.actors = actor_slots(*report.config);
  else
    report.config.reset();

  if (options.format == CheckOptions::Format::Json) {
    out << to_json(report, JsonStyle::Pretty) << '\n';
  } else if (report.ok) {
    out << to_yaml(*report.config) << card_map(report.actors);
  } else {
    err << render(report.issues);
  }
  return report.ok ? 0 : 1;
}

}  // namespace orchestrator
}  // namespace temper
