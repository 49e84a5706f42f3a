#include "orchestrator/metrics/metrics_line.hpp"

#include "core/json.hpp"
#include "core/statistics.hpp"
#include "orchestrator/metrics/metric_table.hpp"

#include <fmt/format.h>

namespace temper::orchestrator {

namespace {

/// `sources/reward/*` and "math": `sources/reward/math`.
std::string name_in_family(const Metric& metric, const std::string& source) {
  return std::string(metric.name).replace(metric.name.find('*'), 1, source);
}

}  // namespace

void for_each_figure(const MetricsLine& line,
                     const std::function<void(std::string_view name, double value)>& use) {
  for (const Metric& metric : metric_table()) {
    if (const auto of_step = metric.of_line(line)) {
      use(metric.name, *of_step);
    } else if (metric.of_evaluation != nullptr) {
      if (line.evaluation)
        use(metric.name, metric.of_evaluation(*line.evaluation));
    } else if (metric.of_judges != nullptr) {
      if (line.update.judges)
        use(metric.name, metric.of_judges({*line.update.judges, line.update.before.judges}));
    } else if (metric.name == "terms/*") {
      for (const auto& [term, reward] : line.update.batch.terms)
        use(fmt::format("terms/{}", term), rounded(reward.mean(), 1e4));
    } else if (metric.of_source != nullptr) {
      for (const SourceFigures& source : line.update.batch.sources) {
        if (const auto value = metric.of_source(source))
          use(name_in_family(metric, source.name), *value);
      }
    } else if (metric.of_evaluated_source != nullptr) {
      if (!line.evaluation)
        continue;
      for (const command::Evaluated::Source& source : line.evaluation->sources)
        use(name_in_family(metric, source.name), metric.of_evaluated_source(source));
    } else if (metric.name == "states/*") {
      for (const auto& [state, share] : line.states)
        use(fmt::format("states/{}", name_of(state)), share);
    }
  }
}

std::string to_json_line(const MetricsLine& line) {
  std::string out = "{", open;
  for_each_figure(line, [&](std::string_view name, double value) {
    const std::size_t slash = name.find('/');
    const std::string_view object =
        slash == std::string_view::npos ? std::string_view() : name.substr(0, slash);
    const bool begins = object != open;
    if (begins && !open.empty())
      out += '}';
    if (out.back() != '{')
      out += ',';
    if (begins && !object.empty())
      out += fmt::format("\"{}\":{{", object);
    open = object;
    name.remove_prefix(object.empty() ? 0 : slash + 1);
    out += fmt::format("\"{}\":{}", name, to_json(value));
  });
  return out + (open.empty() ? "}" : "}}");
}

}  // namespace temper::orchestrator
