#include "cli/study/validate_command.hpp"

#include "cli/command/exit_code.hpp"
#include "core/files.hpp"
#include "core/json.hpp"
#include "core/text/numbers.hpp"
#include "core/yaml.hpp"
#include "sim_hw/published/measurement_file.hpp"
#include "sim_hw/validation/coverage.hpp"
#include "sim_hw/validation/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>

namespace temper::cli {
namespace {

using sim_hw::Comparison;
using sim_hw::Statistics;

struct KindErrorsJson {
  std::string kind;
  std::int64_t n = 0;
  std::optional<double> mape, bias, max, rank_correlation;
};
void describe(auto& v, KindErrorsJson& k) {
  v.field(1, "kind", k.kind);
  v.field(2, "n", k.n);
  v.field(3, "mape", k.mape);
  v.field(4, "bias", k.bias);
  v.field(5, "max", k.max);
  v.field(6, "rank_correlation", k.rank_correlation);
}

/// Measured and predicted values in the row's unit. A failed row has no prediction and no error.
struct RowJson {
  std::string id, hardware;
  std::int64_t cards = 1;
  std::string kind, params, metric, unit;
  double measured = 0;
  std::optional<double> predicted, error;
  std::optional<double> low{}, high{};  ///< Of a row that leaves conditions open.
  std::string matters{};                ///< The open parameter that changes the answer most.
};
void describe(auto& v, RowJson& r) {
  v.field(1, "id", r.id);
  v.field(2, "hardware", r.hardware);
  v.field(3, "cards", r.cards);
  v.field(4, "kind", r.kind);
  v.field(5, "params", r.params);
  v.field(6, "metric", r.metric);
  v.field(7, "unit", r.unit);
  v.field(8, "measured", r.measured);
  v.field(9, "predicted", r.predicted);
  v.field(10, "error", r.error);
  v.field(11, "low", r.low);
  v.field(12, "high", r.high);
  v.field(13, "matters", r.matters);
}

struct ValidateJson {
  std::vector<KindErrorsJson> kinds;
  std::vector<RowJson> rows;
  std::vector<sim_hw::Coverage> coverage{};
};
void describe(auto& v, ValidateJson& j) {
  v.field(3, "coverage", j.coverage);
  v.field(1, "kinds", j.kinds);
  v.field(2, "rows", j.rows);
}

RowJson to_document(const Comparison& row) {
  RowJson out{row.row.id,
              row.row.hardware,
              row.row.cards,
              row.row.kind,
              row.row.params,
              row.row.metric,
              row.row.unit,
              row.row.value,
              std::nullopt,
              row.error()};
  if (row.predicted)
    out.predicted = *row.predicted / sim_hw::si_factor(row.row.unit).value_or(1);
  if (row.band) {
    out.low = row.band->low / sim_hw::si_factor(row.row.unit).value_or(1);
    out.high = row.band->high / sim_hw::si_factor(row.row.unit).value_or(1);
    out.matters = row.band->matters;
  }
  return out;
}

/// "gemm=0.2" or "gemm=20%".
Result<std::map<std::string, double>> parse_limits(const std::vector<std::string>& texts) {
  std::map<std::string, double> limits;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    const char* const begin = text.data() + std::min(text.size(), equals + 1);
    const char* const end = text.data() + text.size();
    double value = 0;
    const auto [stop, errc] = std::from_chars(begin, end, value);
    const bool in_percent = stop + 1 == end && *stop == '%';
    if (equals == 0 || equals == std::string::npos || errc != std::errc{} ||
        (stop != end && !in_percent) || !std::isfinite(value) || value < 0) {
      return invalid_input(
          fmt::format("--max-mape: expected kind=limit such as gemm=0.2, found `{}`", text));
    }
    if (value > 1 && !in_percent) {
      return invalid_input(
          fmt::format("--max-mape: {} is {:.0f} %; write {}% for percent, or a fraction",
                      text,
                      value * 100,
                      value));
    }
    limits[text.substr(0, equals)] = in_percent ? value / 100 : value;
  }
  return limits;
}

/// Errors of the kinds and of other names in limits: a metric ("peak_memory") or a metric of a kind
/// ("train_step.peak_memory").
std::vector<Statistics> limited(const std::map<std::string, double>& limits,
                                std::vector<Statistics> kinds,
                                const std::vector<Comparison>& rows) {
  for (const auto& [key, limit] : limits) {
    std::vector<Comparison> named;
    for (const Comparison& row : rows) {
      if (row.row.metric == key || row.row.kind + "." + row.row.metric == key) {
        named.push_back(row);
        named.back().row.kind = key;
      }
    }
    for (Statistics& s : sim_hw::by_kind(named))
      kinds.push_back(std::move(s));
  }
  return kinds;
}

/// One line per exceeded limit.
std::vector<std::string> broken_limits(const std::map<std::string, double>& limits,
                                       const std::vector<Statistics>& kinds) {
  std::vector<std::string> broken;
  for (const auto& [kind, limit] : limits) {
    const auto found = std::find_if(
        kinds.begin(), kinds.end(), [&k = kind](const Statistics& s) { return s.kind == k; });
    if (found == kinds.end() || !found->mape) {
      broken.push_back(fmt::format("--max-mape {}: no row with this name was predicted", kind));
    } else if (*found->mape > limit) {
      broken.push_back(fmt::format("{}: MAPE {} is above the limit {}",
                                   kind,
                                   percent_text(*found->mape, 1),
                                   percent_text(limit, 1)));
    }
  }
  return broken;
}

Result<std::unique_ptr<sim_hw::Catalog>> make_catalog(const ValidateOptions& options) {
  auto catalog = std::make_unique<sim_hw::Catalog>(sim_hw::Catalog::shipped());
  if (!options.hardware_file.empty()) {
    TEMPER_TRY(sim_hw::HardwareSpec spec, sim_hw::hardware_in(options.hardware_file, *catalog));
    catalog->put(std::move(spec));
  }
  return catalog;
}

Result<sim_hw::MeasurementFile> read_files(const std::vector<std::string>& files,
                                           sim_hw::Catalog& catalog) {
  sim_hw::MeasurementFile all;
  for (const std::string& file : files) {
    TEMPER_TRY(sim_hw::MeasurementFile each, sim_hw::read_any(file, catalog));
    std::move(each.rows.begin(), each.rows.end(), std::back_inserter(all.rows));
    std::move(each.unused.begin(), each.unused.end(), std::back_inserter(all.unused));
  }
  if (all.rows.empty() && all.unused.empty())
    return invalid_input("the given files contain no rows");
  return all;
}

/// The output file of a converted row.
std::string converted_file(const sim_hw::Row& row) {
  if (row.kind == "train_iteration" && row.hardware == "nvidia-a100")
    return "megatron.csv";
  return row.hardware.starts_with("nvidia") ? "nvidia.csv" : "ascend.csv";
}

Status write_converted(const sim_hw::MeasurementFile& all,
                       const std::string& folder,
                       std::ostream& out) {
  if (folder.empty()) {
    out << sim_hw::to_csv(all.rows);
    return {};
  }
  TEMPER_TRY_STATUS(make_folder(folder));
  std::map<std::string, std::vector<sim_hw::Row>> files;
  for (const sim_hw::Row& row : all.rows)
    files[converted_file(row)].push_back(row);
  for (const auto& [name, rows] : files) {
    TEMPER_TRY_STATUS(
        write_file_atomically(std::filesystem::path(folder) / name, sim_hw::to_csv(rows)));
  }
  return write_file_atomically(std::filesystem::path(folder) / "unused.csv",
                               sim_hw::to_csv(all.unused));
}

Result<sim_hw::ReportNotes> read_notes(const ValidateOptions& options,
                                       const sim_hw::Catalog& catalog) {
  const std::filesystem::path path = options.notes.empty()
                                         ? catalog.configs() / "validation" / "notes.yaml"
                                         : std::filesystem::path(options.notes);
  Result<std::string> text = read_file(path);
  if (!text && options.notes.empty())
    return sim_hw::ReportNotes{};
  if (!text)
    return std::move(text).error();
  auto notes = read_yaml<sim_hw::ReportNotes>(path.string(), *text);
  if (!notes.issues.empty())
    return config_error(locate(notes.document, std::move(notes.issues)));
  return std::move(notes.value);
}

Status write_report(const ValidateOptions& options,
                    sim_hw::Catalog& catalog,
                    const std::vector<Comparison>& rows,
                    std::vector<sim_hw::UnusedRow> unused) {
  sim_hw::ReportInput input;
  TEMPER_TRY(input.notes, read_notes(options, catalog));
  TEMPER_TRY(sim_hw::ReportTables tables,
             sim_hw::read_report_tables(catalog.configs() / "validation" / "tables.yaml"));
  input.tables = std::move(tables.tables);
  input.coverage_before = std::move(tables.coverage_before);
  input.comparisons = rows;
  input.unused = std::move(unused);
  for (const std::string& name : catalog.hardware_names()) {
    TEMPER_TRY(const sim_hw::HardwareSpec* spec, catalog.hardware(name));
    input.hardware.push_back(spec);
  }
  for (const std::string& name : catalog.framework_names()) {
    TEMPER_TRY(const sim_hw::FrameworkSpec* spec, catalog.framework(name));
    input.frameworks.push_back(spec);
  }
  return write_file_atomically(options.report, sim_hw::validation_report(input));
}

void print_rows(const std::vector<Comparison>& rows, std::ostream& out) {
  out << fmt::format("{:<28} {:<22} {:>12} {:>12} {:<8} {:>9}  {}\n",
                     "row",
                     "kind metric",
                     "measured",
                     "predicted",
                     "unit",
                     "error",
                     "params");
  for (const Comparison& row : rows) {
    const RowJson r = to_document(row);
    const std::string what = r.kind + " " + r.metric;
    if (row.band) {
      out << fmt::format("{:<28} {:<22} {:>12.6g} {:>5.4g} to {:.4g} {}: {} matters most  {}\n",
                         r.id,
                         what,
                         r.measured,
                         *r.low,
                         *r.high,
                         r.unit,
                         r.matters,
                         r.params);
      continue;
    }
    if (!r.predicted) {
      out << fmt::format("{:<28} {:<22} FAILED: {}\n", r.id, what, row.failure);
      continue;
    }
    out << fmt::format("{:<28} {:<22} {:>12.6g} {:>12.6g} {:<8} {:>9}  {} {}\n",
                       r.id,
                       what,
                       r.measured,
                       *r.predicted,
                       r.unit,
                       r.error ? percent_text(*r.error, 1) : "–",
                       r.hardware,
                       r.params);
  }
  out << '\n';
}

void print_kinds(const std::vector<Statistics>& kinds, std::ostream& out) {
  const auto percent = [](const std::optional<double>& value) {
    return value ? percent_text(*value, 1) : std::string("-");
  };
  out << fmt::format("{:<24}{:>6}{:>8}{:>10}{:>10}{:>10}{:>8}\n",
                     "kind",
                     "rows",
                     "failed",
                     "MAPE",
                     "bias",
                     "max",
                     "rank");
  for (const Statistics& kind : kinds) {
    out << fmt::format("{:<24}{:>6}{:>8}{:>10}{:>10}{:>10}{:>8}\n",
                       kind.kind,
                       kind.n,
                       kind.failed,
                       percent(kind.mape),
                       percent(kind.bias),
                       percent(kind.max),
                       kind.rank_correlation ? fmt::format("{:.3f}", *kind.rank_correlation) : "-");
  }
}

/// Published rows with a prediction, by area, and the reasons of the others.
void print_coverage(const std::vector<sim_hw::Coverage>& areas, std::ostream& out) {
  if (areas.empty())
    return;
  out << fmt::format("\n{:<16}{:<18}{:>6}{:>8}{:>11}{:>8}\n",
                     "table",
                     "area",
                     "rows",
                     "values",
                     "intervals",
                     "share");
  const std::vector<sim_hw::Coverage> tables = sim_hw::by_table(areas);
  for (const auto* group : {&areas, &tables}) {
    for (const sim_hw::Coverage& c : *group) {
      const auto answered = static_cast<double>(c.points + c.bands);
      out << fmt::format("{:<16}{:<18}{:>6}{:>8}{:>11}{:>8}\n",
                         c.table,
                         c.area,
                         c.rows,
                         c.points,
                         c.bands,
                         percent_text(answered / static_cast<double>(c.rows), 0));
    }
  }
  for (const sim_hw::Coverage& c : tables) {
    for (const auto& [reason, rows] : c.reasons)
      out << fmt::format("{}: {} without a prediction: {}\n", c.table, rows, reason);
  }
}

void print_json(const std::vector<Statistics>& kinds,
                const std::vector<Comparison>& rows,
                std::vector<sim_hw::Coverage> areas,
                std::ostream& out) {
  ValidateJson document;
  document.coverage = std::move(areas);
  for (const Statistics& k : kinds)
    document.kinds.push_back({k.kind, k.n, k.mape, k.bias, k.max, k.rank_correlation});
  for (const Comparison& row : rows)
    document.rows.push_back(to_document(row));
  out << to_json(document, JsonStyle::Pretty) << '\n';
}

/// Prints the results. The only remaining failures are those of the checks.
Result<int> validate(const ValidateOptions& options, std::ostream& out, std::ostream& err) {
  TEMPER_TRY(const auto limits, parse_limits(options.max_mape));
  TEMPER_TRY(const auto catalog, make_catalog(options));
  TEMPER_TRY(const sim_hw::MeasurementFile all, read_files(options.files, *catalog));
  if (options.convert) {
    TEMPER_TRY_STATUS(write_converted(all, options.out, out));
    err << fmt::format(
        "converted {} rows; {} are marked as not used\n", all.rows.size(), all.unused.size());
    return 0;
  }
  const std::vector<Comparison> rows = sim_hw::compare(*catalog, all.rows);
  const std::vector<Statistics> kinds = sim_hw::by_kind(rows);
  if (!options.report.empty())
    TEMPER_TRY_STATUS(write_report(options, *catalog, rows, all.unused));
  if (options.json) {
    print_json(kinds, rows, sim_hw::coverage(rows, all.unused), out);
  } else {
    if (options.rows)
      print_rows(rows, out);
    print_kinds(kinds, out);
    print_coverage(sim_hw::coverage(rows, all.unused), out);
    if (!all.unused.empty())
      out << fmt::format("{} published rows are not used (--convert lists the reasons)\n",
                         all.unused.size());
  }
  int failed = 0;
  for (const Comparison& row : rows) {
    if (row.answered() || options.allow_failures)
      continue;
    ++failed;
    if (options.json || !options.rows)
      err << fmt::format("temper: {}: {}\n", row.row.id, row.failure);
  }
  if (failed > 0)
    err << fmt::format("temper: {} rows have no prediction (--allow-failures accepts them)\n",
                       failed);
  for (const std::string& broken : broken_limits(limits, limited(limits, kinds, rows))) {
    err << "temper: " << broken << '\n';
    ++failed;
  }
  return failed;
}

}  // namespace

int run_validate(const ValidateOptions& options, std::ostream& out, std::ostream& err) {
  const Result<int> failed = validate(options, out, err);
  if (!failed)
    return fail(failed.error(), err);
  return *failed == 0 ? kDone : kFound;
}

Handler validate_command(Flags& flags) {
  const auto options = std::make_shared<ValidateOptions>();
  flags.arguments("files", options->files, "CSV files of measurements or publications");
  flags.repeated("--max-mape",
                 options->max_mape,
                 "kind=LIMIT: exit with 3 if the mean error of a kind exceeds it (repeatable)");
  flags.text("--hardware-file",
             options->hardware_file,
             "Use this description instead of the shipped one of the same name");
  flags.flag("--rows,!--no-rows", options->rows, "Print each row (default)");
  flags.flag("--convert", options->convert, "Convert publications into rows and stop");
  flags.text("--out", options->out, "Folder for the rows of --convert (default: stdout)");
  flags.text("--report", options->report, "Write a Markdown report to this file");
  flags.text("--notes", options->notes, "YAML file with notes for the report");
  flags.flag(
      "--allow-failures", options->allow_failures, "Succeed even if rows have no prediction");
  flags.json(options->json);
  return [options] { return run_validate(*options, std::cout, std::cerr); };
}

}  // namespace temper::cli
