// The table of metrics: one row per figure of a step. metrics.jsonl, summary.json, the report, the
// trace, TensorBoard, Prometheus, the page, the side-cars and docs/reference/metrics.md all come
// from it, so a new metric is one row here, beside the code that computes and stores its value.
#pragma once

#include "orchestrator/pipeline/watch_sections.hpp"
#include "orchestrator/scheduler/state/commands.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace temper::orchestrator {

struct EvaluationFigures;
struct JudgeFigures;
struct SourceFigures;
struct MetricsLine;

/// Whether the terminal shows a metric while the run works, under its name.
enum class InTerminal { No, Yes };

struct Metric {
  /// Metrics of a group are lines of one chart, and one line of the report. Empty: in files only.
  struct Place {
    std::string_view group{}, label{};
    InTerminal terminal = InTerminal::No;
  };
  /// Names in other systems, separated by spaces. Empty: no metric with the same meaning.
  struct Names {
    std::string_view trl{}, verl{}, prime_rl{};
    std::string_view in(AliasTable system) const;
  };
  std::string_view name{};  ///< `/` separates the names of nested objects in metrics.jsonl.
  std::string_view unit{};  ///< Empty: a plain number.
  std::string_view doc{};   ///< Definition, in one sentence.
  Place place{};
  Names names{};
  /// One of these computes the value. A metric with none of them is a family (`states/*`,
  /// `terms/*`), or a sum over it that readers of metrics.jsonl add.
  double (*value)(const MetricsLine& line) = nullptr;
  std::optional<double> (*if_any)(const MetricsLine& line) = nullptr;
  double (*of_evaluation)(const EvaluationFigures& evaluation) = nullptr;
  double (*of_judges)(const JudgeFigures& judges) = nullptr;
  /// `*` at the end of the name stands for the source. Empty for a source without a value.
  std::optional<double> (*of_source)(const SourceFigures& source) = nullptr;
  /// The same, of an evaluation.
  double (*of_evaluated_source)(const command::Evaluated::Source& source) = nullptr;

  /// What `value` or `if_any` computes; none if there is neither, or the step has no value.
  std::optional<double> of_line(const MetricsLine& line) const {
    if (value != nullptr)
      return value(line);
    return if_any != nullptr ? if_any(line) : std::nullopt;
  }
};

std::span<const Metric> metric_table();

/// The table as a JSON list, for the page and for Python.
std::string metric_table_json();

}  // namespace temper::orchestrator
