#include "sim_hw/validation/report.hpp"

#include "core/files.hpp"
#include "core/text/numbers.hpp"
#include "core/yaml.hpp"
#include "core/yaml_file.hpp"
#include "sim_hw/request/readable.hpp"
#include "sim_hw/validation/provenance.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

namespace temper::sim_hw {
namespace {

constexpr std::size_t kWorstRows = 20;

/// Escapes characters that would end a table cell.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text)
    out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

std::string optional_percent(const std::optional<double>& value) {
  return value ? percent_text(*value, 1) : "–";
}

std::string statistics_table(std::span<const Statistics> rows) {
  const bool detailed =
      std::any_of(rows.begin(), rows.end(), [](const Statistics& s) { return !s.metric.empty(); });
  std::string out = detailed ? "| Kind | Hardware | Metric " : "| Kind ";
  out += "| Rows | MAPE | Bias | Max | Rank correlation |\n";
  out += detailed ? "|---|---|---" : "|---";
  out += "|---:|---:|---:|---:|---:|\n";
  for (const Statistics& row : rows) {
    out += detailed ? fmt::format("| {} | {} | {} ", row.kind, row.hardware, row.metric)
                    : fmt::format("| {} ", row.kind);
    out += fmt::format("| {}{} | {} | {} | {} | {} |\n",
                       row.n,
                       row.failed > 0 ? fmt::format(" ({} failed)", row.failed) : "",
                       optional_percent(row.mape),
                       optional_percent(row.bias),
                       optional_percent(row.max),
                       row.rank_correlation ? fmt::format("{:.3f}", *row.rank_correlation) : "–");
  }
  return out;
}

std::string note_of(const ReportNotes& notes, const Row& row) {
  for (const std::string& key : {row.id, row.kind}) {
    if (const auto found = notes.notes.find(key); found != notes.notes.end())
      return found->second;
  }
  return "";
}

/// SI unit of a row's unit: "ms" -> "s", "GB/s" -> "B/s"; other units are kept.
std::string_view si_unit(std::string_view unit) {
  for (const std::string_view si : {"B/s", "FLOP/s", "tokens/s"}) {
    if (unit.ends_with(si))
      return si;
  }
  if (unit.ends_with("B"))
    return "B";
  return unit == "ms" || unit == "us" || unit == "ns" ? "s" : unit;
}

std::string worst_rows(const ReportInput& input) {
  std::vector<const Comparison*> rows;
  for (const Comparison& row : input.comparisons) {
    if (row.error())
      rows.push_back(&row);
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Comparison* a, const Comparison* b) {
    return std::abs(*a->error()) > std::abs(*b->error());
  });
  rows.resize(std::min(rows.size(), kWorstRows));
  std::string out =
      "| Row | Question | Metric | Measured | Predicted | Error | Why "
      "|\n|---|---|---|---:|---:|---:|---|\n";
  for (const Comparison* row : rows) {
    out += fmt::format("| {} | {} on {}: {} | {} | {} | {} | {} | {} |\n",
                       cell(row->row.id),
                       row->row.kind,
                       row->row.hardware,
                       cell(row->row.params),
                       row->row.metric,
                       readable(row->measured, si_unit(row->row.unit)),
                       readable(*row->predicted, si_unit(row->row.unit)),
                       percent_text(*row->error(), 1),
                       cell(note_of(input.notes, row->row)));
  }
  return out;
}

std::string failed_rows(const ReportInput& input) {
  std::string out;
  for (const Comparison& row : input.comparisons) {
    if (!row.answered())
      out += fmt::format("- {} ({}): {}\n", row.row.id, row.row.kind, row.failure);
  }
  return out;
}

/// Splits the rows by whether a fit has used them.
std::string by_provenance(const ReportInput& input) {
  std::map<Provenance, std::vector<Comparison>> groups;
  for (const Comparison& row : input.comparisons)
    groups[provenance(input.hardware, input.frameworks, row.row)].push_back(row);
  constexpr std::array<std::pair<Provenance, std::string_view>, 3> kSections{
      {{Provenance::Unused,
        "\n## Rows that no fit has used\n\nThese are predictions: the source of no constant names "
        "them.\n\n"},
       {Provenance::Used,
        "\n## Rows that a fit has used\n\nThese say how well the equations follow their data: the "
        "source of a constant, below, names them.\n\n"},
       {Provenance::Unrecorded,
        "\n## Rows that may have been used\n\nTheir hardware records no source for the constants "
        "behind their kind.\n\n"}}};
  std::string out;
  for (const auto& [which, heading] : kSections) {
    if (const auto group = groups.find(which); group != groups.end())
      out += std::string(heading) + statistics_table(by_kind(group->second));
  }
  return out;
}

/// Range of a parameter in the data of a kind: bounds of numbers, lists of words.
struct Range {
  std::optional<double> low;
  double high = 0;
  std::set<std::string> words;

  void add(const std::string& text) {
    const Result<double> value = parse_number<double>(text);
    if (!value) {
      words.insert(text);
      return;
    }
    high = low ? std::max(high, *value) : *value;
    low = low ? std::min(*low, *value) : *value;
  }
  std::string text() const {
    std::string out;
    if (low)
      out = *low == high ? number_text(high) : number_text(*low) + " to " + number_text(high);
    for (const std::string& word : words)
      out += (out.empty() ? "" : ", ") + word;
    return out;
  }
};

std::string validity(const ReportInput& input) {
  std::map<std::string, std::map<std::string, Range>> kinds;
  for (const Comparison& row : input.comparisons) {
    auto& ranges = kinds[row.row.kind];
    ranges["hardware"].add(row.row.hardware);
    ranges["cards"].add(std::to_string(row.row.cards));
    if (const auto params = Params::parse(row.row.params)) {
      for (const auto& [key, value] : params->values())
        ranges[key].add(value);
    }
  }
  std::string out = "| Kind | Parameter | In the data |\n|---|---|---|\n";
  for (const auto& [kind, ranges] : kinds) {
    for (const auto& [key, range] : ranges)
      out += fmt::format("| {} | {} | {} |\n", kind, key, cell(range.text()));
  }
  return out;
}

std::string constants(const ReportInput& input) {
  std::string out =
      "| Hardware or framework | Constants | Source | Rows | Mean error | Max error "
      "|\n|---|---|---|---:|---:|---:|\n";
  const auto add = [&](const auto& specs) {
    for (const auto* spec : specs) {
      for (const FitRecord& fit : spec->fits) {
        out += fmt::format("| {} | {} | {} | {} | {} | {} |\n",
                           spec->name,
                           cell(fit.constants),
                           cell(fit.source),
                           fit.rows,
                           fit.rows > 0 ? percent_text(fit.mean_error, 1) : "–",
                           fit.rows > 0 ? percent_text(fit.max_error, 1) : "–");
      }
    }
  };
  add(input.hardware);
  add(input.frameworks);
  return out;
}

std::string unused_table(std::span<const UnusedRow> unused) {
  std::map<std::string, std::vector<std::string>> by_reason;
  for (const UnusedRow& row : unused)
    by_reason[row.reason].push_back(row.id);
  std::string out = "| Reason | Count | Rows |\n|---|---:|---|\n";
  for (const auto& [reason, ids] : by_reason) {
    std::string list;
    for (const std::string& id : ids)
      list += (list.empty() ? "" : " ") + id;
    out += fmt::format("| {} | {} | {} |\n", cell(reason), ids.size(), list);
  }
  return out;
}

/// Rows with a prediction of this table and area; none if it was not recorded.
std::optional<std::int64_t> points_before(const std::vector<Coverage>& before,
                                          const Coverage& now) {
  for (const Coverage& each : before) {
    if (each.table == now.table && each.area == now.area)
      return each.points;
  }
  return std::nullopt;
}

std::string coverage_line(const ReportInput& input, const Coverage& c) {
  const auto before = points_before(input.coverage_before, c);
  const auto share = [&](std::int64_t rows) {
    return percent_text(static_cast<double>(rows) / static_cast<double>(c.rows), 0);
  };
  return fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} |\n",
                     c.table,
                     c.area,
                     c.rows,
                     before ? fmt::format("{} ({})", *before, share(*before)) : "–",
                     fmt::format("{} ({})", c.points + c.bands, share(c.points + c.bands)),
                     c.points,
                     c.bands > 0 ? fmt::format("{} ({} hold)", c.bands, c.in_band) : "0",
                     c.rows - c.points - c.bands);
}

std::string coverage_section(const ReportInput& input) {
  const std::vector<Coverage> areas = coverage(input.comparisons, input.unused);
  if (areas.empty())
    return "";
  std::string out =
      "\n## Published rows with a prediction\n\n"
      "Every row of the tables of publications counts. `Before`: as first counted, before the "
      "kinds\n"
      "and models of those tables were described. A row that leaves conditions open has an "
      "interval\n"
      "over stated assumptions; `hold` counts the intervals that hold the measured value.\n\n"
      "| Table | Area | Rows | Before | Predicted | Values | Intervals | Without |\n"
      "|---|---|---:|---:|---:|---:|---:|---:|\n";
  for (const Coverage& area : areas)
    out += coverage_line(input, area);
  const std::vector<Coverage> tables = by_table(areas);
  for (const Coverage& table : tables)
    out += coverage_line(input, table);
  out += "\n| Table | Why there is no prediction | Rows |\n|---|---|---:|\n";
  for (const Coverage& table : tables) {
    std::vector<std::pair<std::string, std::int64_t>> reasons(table.reasons.begin(),
                                                              table.reasons.end());
    std::ranges::stable_sort(reasons,
                             [](const auto& a, const auto& b) { return a.second > b.second; });
    for (const auto& [reason, rows] : reasons)
      out += fmt::format("| {} | {} | {} |\n", table.table, cell(reason), rows);
  }
  return out;
}

std::string bands(const ReportInput& input) {
  std::string out;
  for (const Comparison& row : input.comparisons) {
    if (!row.band)
      continue;
    out += fmt::format("| {} | {} on {}: {} | {} | {} | {} to {} | {} | {} |\n",
                       cell(row.row.id),
                       row.row.kind,
                       row.row.hardware,
                       cell(row.row.params),
                       row.row.metric,
                       readable(row.measured, si_unit(row.row.unit)),
                       readable(row.band->low, si_unit(row.row.unit)),
                       readable(row.band->high, si_unit(row.row.unit)),
                       row.in_band() ? "yes" : "no",
                       row.band->matters);
  }
  if (out.empty())
    return "";
  return "\n## Rows answered with an interval\n\n"
         "`a..b` in a question are the values that were tried for a condition that the row does "
         "not state.\n\n"
         "| Row | Question | Metric | Measured | Interval | Held | Matters most |\n"
         "|---|---|---|---:|---:|---|---|\n" +
         out;
}

}  // namespace

std::string validation_report(const ReportInput& input) {
  const std::vector<Statistics> kinds = by_kind(input.comparisons);
  const std::vector<Statistics> details = by_kind_hardware_metric(input.comparisons);
  std::string out =
      "# Validation of the hardware model\n\n"
      "Written by `temper validate --report docs/reports/validation.md configs/validation/*.csv`; "
      "do not "
      "edit.\n\n"
      "Error of a row = predicted / measured - 1. MAPE is the mean of its size, bias its mean, max "
      "its\n"
      "largest size. Rank correlation is Spearman's, within each metric: whether the model orders\n"
      "configurations as they were measured. A kind's row is over all its metrics: memory and "
      "counts of\n"
      "steps, which are bookkeeping and nearly exact, lower it; the second table has each metric "
      "by\n"
      "itself.\n\n## By kind\n\n";
  out += statistics_table(kinds);
  out += "\n## By kind, hardware and metric\n\n" + statistics_table(details);
  out += coverage_section(input);
  out += by_provenance(input);
  for (const StatisticsTable& table : input.tables) {
    out +=
        fmt::format("\n## {}\n\n{}\n\n{}", table.title, table.text, statistics_table(table.rows));
  }
  out += bands(input);
  out += "\n## The rows that are furthest off\n\n" + worst_rows(input);
  if (const std::string failed = failed_rows(input); !failed.empty())
    out += "\n## Rows without a prediction\n\n" + failed;
  out +=
      "\n## Range of validity\n\nWhat the measurements span; beyond it a prediction is an "
      "extrapolation by its equation.\n\n" +
      validity(input);
  out += "\n## Constants and their provenance\n\n" + constants(input);
  if (!input.unused.empty())
    out += "\n## Published rows that are not used\n\n" + unused_table(input.unused);
  return out;
}

Result<ReportTables> read_report_tables(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file))
    return ReportTables{};
  return read_yaml_file<ReportTables>(file);
}

Status put_report_table(const std::filesystem::path& file, StatisticsTable table) {
  TEMPER_TRY(ReportTables all, read_report_tables(file));
  const auto same = std::find_if(all.tables.begin(), all.tables.end(), [&](const auto& each) {
    return each.title == table.title;
  });
  if (same == all.tables.end())
    all.tables.push_back(std::move(table));
  else
    *same = std::move(table);
  return write_file_atomically(file, to_yaml(all));
}

}  // namespace temper::sim_hw
