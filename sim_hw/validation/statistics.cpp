#include "sim_hw/validation/statistics.hpp"

#include "core/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace temper::sim_hw {
namespace {

using Pointers = std::vector<const Comparison*>;

std::optional<double> group_rank_correlation(const Pointers& rows) {
  std::map<std::string, std::pair<std::vector<double>, std::vector<double>>> metrics;
  for (const Comparison* row : rows) {
    if (!row->predicted)
      continue;
    auto& [predicted, measured] = metrics[row->row.metric];
    predicted.push_back(*row->predicted);
    measured.push_back(row->measured);
  }
  double sum = 0;
  double weight = 0;
  for (const auto& [name, values] : metrics) {
    if (const auto rho = rank_correlation(values.first, values.second)) {
      const auto n = static_cast<double>(values.first.size());
      sum += *rho * n;
      weight += n;
    }
  }
  return weight > 0 ? std::optional(sum / weight) : std::nullopt;
}

void fill(Statistics& out, const Pointers& rows) {
  double absolute = 0;
  double sum = 0;
  double largest = 0;
  for (const Comparison* row : rows) {
    const std::optional<double> error = row->error();
    if (!error) {
      out.failed += row->answered() ? 0 : 1;
      continue;
    }
    ++out.n;
    absolute += std::abs(*error);
    sum += *error;
    largest = std::max(largest, std::abs(*error));
  }
  if (out.n > 0) {
    out.mape = absolute / static_cast<double>(out.n);
    out.bias = sum / static_cast<double>(out.n);
    out.max = largest;
  }
  out.rank_correlation = group_rank_correlation(rows);
}

/// The request of a row; rows with equal requests share one prediction.
auto request_key(const Row& row) {
  return std::make_tuple(row.hardware, row.cards, row.kind, row.params, row.folder.string());
}

Result<BandAnswer> ask(Catalog& catalog, const Row& row, std::span<const Kind> known) {
  TEMPER_TRY(Params params, Params::parse(row.params));
  const CostContext context{catalog, row.folder};
  return answer_band(context, Request{row.hardware, row.cards, row.kind, std::move(params)}, known);
}

Comparison compare_row(const Row& row, const Result<BandAnswer>& answer) {
  Comparison out;
  out.row = row;
  const Result<double> factor = si_factor(row.unit);
  if (!factor) {
    out.failure = factor.error().context;
    return out;
  }
  out.measured = row.value * *factor;
  if (answer && !answer->open.empty()) {
    Result<Band> band = band_of(*answer, row.metric);
    if (band)
      out.band = std::move(*band);
    else
      out.failure = band.error().context;
    return out;
  }
  const Result<Cost>& prediction =
      answer ? answer->answers.front() : Result<Cost>(Error(answer.error()));
  if (!prediction) {
    out.failure = prediction.error().context;
    out.exceeds_memory = prediction.error().code == ErrorCode::OutOfMemory;
    return out;
  }
  if (const Metric* metric = prediction->find(row.metric)) {
    out.predicted = metric->value;
    return out;
  }
  out.failure = row.kind + ": no metric `" + row.metric + "`; there is ";
  for (const Metric& metric : prediction->metrics)
    out.failure += (&metric == &prediction->metrics.front() ? "" : ", ") + metric.name;
  return out;
}

}  // namespace

std::optional<double> Comparison::error() const {
  if (!predicted || measured == 0)
    return std::nullopt;
  const double error = *predicted / measured - 1;
  return row.metric.ends_with("_upper_bound") ? std::max(0.0, error) : error;
}

std::vector<Comparison> compare(Catalog& catalog, std::span<const Row> rows) {
  return compare(catalog, rows, kinds());
}

std::vector<Comparison> compare(Catalog& catalog,
                                std::span<const Row> rows,
                                std::span<const Kind> known) {
  std::map<decltype(request_key(rows[0])), Result<BandAnswer>> answers;
  std::vector<Comparison> out;
  for (const Row& row : rows) {
    auto answer = answers.find(request_key(row));
    if (answer == answers.end())
      answer = answers.emplace(request_key(row), ask(catalog, row, known)).first;
    out.push_back(compare_row(row, answer->second));
  }
  return out;
}

std::vector<Statistics> by_kind(std::span<const Comparison> rows) {
  std::map<std::string, Pointers> groups;
  for (const Comparison& row : rows)
    groups[row.row.kind].push_back(&row);
  std::vector<Statistics> out;
  for (const auto& [kind, members] : groups) {
    out.emplace_back().kind = kind;
    fill(out.back(), members);
  }
  return out;
}

std::vector<Statistics> by_kind_hardware_metric(std::span<const Comparison> rows) {
  std::map<std::tuple<std::string, std::string, std::string>, Pointers> groups;
  for (const Comparison& row : rows)
    groups[{row.row.kind, row.row.hardware, row.row.metric}].push_back(&row);
  std::vector<Statistics> out;
  for (const auto& [key, members] : groups) {
    Statistics& group = out.emplace_back();
    std::tie(group.kind, group.hardware, group.metric) = key;
    fill(group, members);
  }
  return out;
}

}  // namespace temper::sim_hw
