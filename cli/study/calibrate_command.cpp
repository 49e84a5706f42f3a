#include "cli/study/calibrate_command.hpp"

#include "cli/command/exit_code.hpp"
#include "core/json.hpp"
#include "sim_hw/calibration/fit.hpp"
#include "sim_hw/calibration/store.hpp"
#include "sim_hw/hardware/constant_list.hpp"
#include "sim_hw/validation/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <set>

namespace temper::cli {
namespace {

using namespace sim_hw;

Result<std::vector<sim_hw::Row>> read_all(const std::vector<std::string>& files) {
  std::vector<sim_hw::Row> rows;
  for (const std::string& file : files) {
    TEMPER_TRY(std::vector<sim_hw::Row> some, read_measurements(file));
    rows.insert(rows.end(), some.begin(), some.end());
  }
  return rows;
}

/// Whether an id matches a pattern: "SD084", or "SD08*" for a prefix.
bool names_row(std::string_view pattern, std::string_view id) {
  if (!pattern.ends_with('*'))
    return pattern == id;
  return id.starts_with(pattern.substr(0, pattern.size() - 1));
}

/// Rows to fit: the chosen ids, else every operator and step. Iterations are kept for validation.
/// Host links belong to the hardware description, not to the operator constants.
std::vector<sim_hw::Row> fit_rows(const std::vector<sim_hw::Row>& rows,
                                  const std::vector<std::string>& ids) {
  std::set<std::string, std::less<>> kinds;
  for (const auto& area : {operator_kinds(), step_kinds()}) {
    for (const Kind& kind : area)
      kinds.emplace(kind.name);
  }
  kinds.erase("host_to_device");
  kinds.erase("device_to_host");
  std::vector<sim_hw::Row> out;
  for (const sim_hw::Row& row : rows) {
    const bool named = std::any_of(
        ids.begin(), ids.end(), [&](const std::string& id) { return names_row(id, row.id); });
    if (ids.empty() ? kinds.contains(row.kind) : named)
      out.push_back(row);
  }
  return out;
}

Result<std::string> hardware_of(const std::vector<sim_hw::Row>& rows, const std::string& chosen) {
  if (!chosen.empty())
    return chosen;
  std::set<std::string> names;
  for (const sim_hw::Row& row : rows)
    names.insert(row.hardware);
  if (names.size() != 1)
    return invalid_input(fmt::format(
        "the rows cover {} kinds of hardware; choose one with --hardware NAME", names.size()));
  return *names.begin();
}

std::string percent_or_dash(const std::optional<double>& value) {
  return value ? fmt::format("{:.2f} %", *value * 100) : "-";
}

void print_table(std::ostream& out, const std::vector<Statistics>& table) {
  out << fmt::format(
      "{:<22} {:<17} {:>4} {:>9} {:>9} {:>9}\n", "kind", "metric", "n", "MAPE", "bias", "max");
  for (const Statistics& s : table) {
    out << fmt::format("{:<22} {:<17} {:>4} {:>9} {:>9} {:>9}\n",
                       s.kind,
                       s.metric,
                       s.n,
                       percent_or_dash(s.mape),
                       percent_or_dash(s.bias),
                       percent_or_dash(s.max));
  }
}

/// One provenance record per kind of row. It names rows by id if chosen by id, else by file and
/// kind.
std::vector<FitRecord> records(const Fit& fit, const CalibrateOptions& options) {
  std::string names;
  for (const std::string& file : options.files)
    names += (names.empty() ? "" : ", ") + std::filesystem::path(file).filename().string();
  std::string constants;
  for (const std::string& name : fit.fitted)
    constants += (constants.empty() ? "operators." : ", operators.") + name;
  std::vector<FitRecord> out;
  for (const Statistics& s : by_kind(fit.rows)) {
    if (!out.empty())
      constants = "operators: the same constants, fitted together";
    std::string source = names + ", " + s.kind;
    if (!options.ids.empty()) {
      source = s.kind + ", rows";
      for (const sim_hw::Comparison& row : fit.rows) {
        if (row.row.kind == s.kind)
          source += " " + row.row.id;
      }
    }
    out.push_back({constants, std::move(source), s.n, s.mape.value_or(0), s.max.value_or(0)});
  }
  if (options.only.empty()) {
    std::string counted;
    for (const std::string_view name : kCountedConstants)
      counted += (counted.empty() ? "operators." : ", operators.") + std::string(name);
    out.push_back(
        {counted, "counts of what the measured engine reads and writes; not fitted", 0, 0, 0});
  }
  return out;
}

/// Provenance to keep: with --only, that of the constants which were not fitted now.
Result<std::vector<FitRecord>> kept_records(const std::filesystem::path& file,
                                            const CalibrateOptions& options,
                                            const Fit& fit) {
  std::error_code failed;
  if (options.only.empty() || !std::filesystem::exists(file, failed))
    return std::vector<FitRecord>{};
  TEMPER_TRY(Calibration before, load(file));
  return records_without(std::move(before.fits), fit.fitted);
}

struct LeftOutRow {
  std::string row;
  std::string why;
};
void describe(auto& v, LeftOutRow& r) {
  v.field(1, "row", r.row);
  v.field(2, "why", r.why);
}

struct Report {
  OperatorConstants constants;
  std::vector<std::string> fitted;
  std::vector<std::string> undetermined;
  std::vector<FitRecord> fits;
  std::string written;
  std::vector<LeftOutRow> left_out{};
};
void describe(auto& v, Report& r) {
  v.field(1, "constants", r.constants);
  v.field(2, "fitted", r.fitted);
  v.field(3, "undetermined", r.undetermined);
  v.field(4, "fits", r.fits);
  v.field(5, "written", r.written);
  v.field(6, "left_out", r.left_out);
}

/// Writes the errors on models that the fit did not see, for docs/reports/validation.md.
Status put_tables(const std::string& file,
                  const std::string& hardware,
                  const std::vector<HeldOutModel>& left) {
  std::vector<sim_hw::Comparison> all;
  for (const HeldOutModel& model : left)
    all.insert(all.end(), model.rows.begin(), model.rows.end());
  TEMPER_TRY_STATUS(put_report_table(
      file,
      {fmt::format("Leave one model out: {}, all models", hardware),
       "The constants are fitted without the steps of one model, and that model is predicted; this "
       "table has the left-out rows of every model. Rows of single operators (gemm, attention, "
       "moe_layer) stay in every fit: they are microbenchmarks, named after a shape. What only the "
       "left-out steps could tell, such as the share of experts that one sequence reaches, stays "
       "at "
       "its prior.",
       by_kind_hardware_metric(all)}));
  for (const HeldOutModel& model : left) {
    TEMPER_TRY_STATUS(put_report_table(
        file,
        {fmt::format("Leave one model out: {}, without {}", hardware, model.model),
         fmt::format("Fitted without the steps of {}, predicting them.", model.model),
         by_kind_hardware_metric(model.rows)}));
  }
  return {};
}

/// The hardware to fit and the file for its constants.
struct CalibrationSubject {
  std::string name;
  std::filesystem::path target;
};

Result<CalibrationSubject> subject_of(const CalibrateOptions& options,
                                      const std::vector<sim_hw::Row>& rows,
                                      Catalog& catalog) {
  CalibrationSubject subject;
  if (options.hardware_file.empty()) {
    TEMPER_TRY(const std::string hardware, hardware_of(rows, options.hardware));
    TEMPER_TRY(const HardwareSpec* spec, catalog.hardware(hardware));
    subject = {spec->name, catalog.configs() / "calibration" / (spec->name + ".yaml")};
  } else {
    if (!options.hardware.empty())
      return invalid_input("--hardware and --hardware-file exclude each other; give one of them");
    TEMPER_TRY(HardwareSpec spec, hardware_in(options.hardware_file, catalog));
    subject = {spec.name, calibration_file(options.hardware_file)};
    catalog.put(std::move(spec));
  }
  if (!options.out.empty())
    subject.target = options.out;
  return subject;
}

/// The command line that repeats the fit.
std::string command_of(const CalibrateOptions& options, const std::string& name) {
  std::string command = "temper calibrate";
  for (const std::string& file : options.files)
    command += " " + std::filesystem::path(file).filename().string();
  command +=
      options.hardware_file.empty()
          ? " --hardware " + name
          : " --hardware-file " + std::filesystem::path(options.hardware_file).filename().string();
  for (const std::string& only : options.only)
    command += " --only " + only;
  for (const std::string& id : options.ids)
    command += " --id " + id;
  return command;
}

void print_fit(std::ostream& out, const Fit& fit) {
  print_table(out, by_kind_hardware_metric(fit.rows));
  for (const sim_hw::Comparison& row : fit.left_out)
    out << fmt::format("left out: row {}: {}\n", row.row.id, row.failure);
  for (const std::string& constant : fit.undetermined)
    out << fmt::format("not determined by these rows, keeps its prior: {}\n", constant);
}

Status calibrate(const CalibrateOptions& options, std::ostream& out) {
  Catalog catalog = Catalog::shipped();
  TEMPER_TRY(const std::vector<sim_hw::Row> all, read_all(options.files));
  const std::vector<sim_hw::Row> rows = fit_rows(all, options.ids);
  TEMPER_TRY(const CalibrationSubject subject, subject_of(options, rows, catalog));
  FitOptions fit_options;
  fit_options.only = options.only;
  TEMPER_TRY(const Fit fit, fit_operators(catalog, subject.name, rows, fit_options));
  Report report{fit.constants, fit.fitted, fit.undetermined, records(fit, options), ""};
  for (const sim_hw::Comparison& row : fit.left_out)
    report.left_out.push_back({row.row.id, row.failure});
  if (!options.dry_run) {
    TEMPER_TRY(std::vector<FitRecord> fits, kept_records(subject.target, options, fit));
    fits.insert(fits.end(), report.fits.begin(), report.fits.end());
    TEMPER_TRY_STATUS(
        save({fit.constants, fits}, subject.target, command_of(options, subject.name)));
    report.written = subject.target.string();
  }
  if (options.json) {
    out << to_json(report, JsonStyle::Pretty) << "\n";
    return {};
  }
  print_fit(out, fit);
  if (options.leave_one_out) {
    TEMPER_TRY(const std::vector<HeldOutModel> left,
               leave_one_model_out(catalog, subject.name, rows, fit_options));
    for (const HeldOutModel& model : left) {
      out << fmt::format("\nfitted without {}, predicting it:\n", model.model);
      print_table(out, by_kind_hardware_metric(model.rows));
    }
    if (!options.report_tables.empty())
      TEMPER_TRY_STATUS(put_tables(options.report_tables, subject.name, left));
  }
  if (!report.written.empty())
    out << fmt::format("written: {}\n", report.written);
  return {};
}

}  // namespace

int run_calibrate(const CalibrateOptions& options, std::ostream& out, std::ostream& err) {
  const Status done = calibrate(options, out);
  if (done)
    return 0;
  return fail(done.error(), err, "temper calibrate");
}

Handler calibrate_command(Flags& flags) {
  const auto options = std::make_shared<CalibrateOptions>();
  flags.arguments("files", options->files, "CSV files of measurements");
  flags.text("--hardware", options->hardware, "Name of the hardware (default: from the rows)");
  flags.text("--hardware-file", options->hardware_file, "Path of your own hardware description");
  flags.repeated("--only", options->only, "Fit only this constant (repeatable; default: all)");
  flags.repeated(
      "--id", options->ids, "Use only this row (repeatable; default: operators and steps)");
  flags.text("--out",
             options->out,
             "YAML to write (default: configs/calibration/NAME.yaml, or beside --hardware-file)");
  flags.flag("--leave-one-out",
             options->leave_one_out,
             "Also fit without each model in turn and predict it");
  flags.text(
      "--report-tables", options->report_tables, "YAML file for the tables of --leave-one-out");
  flags.flag("--dry-run", options->dry_run, "Print the fit, write nothing");
  flags.json(options->json);
  return [options] { return run_calibrate(*options, std::cout, std::cerr); };
}

}  // namespace temper::cli
