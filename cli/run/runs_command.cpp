#include "cli/run/runs_command.hpp"

#include "cli/command/exit_code.hpp"
#include "core/files.hpp"
#include "core/json.hpp"
#include "core/text/numbers.hpp"
#include "core/yaml.hpp"
#include "orchestrator/metrics/report.hpp"
#include "orchestrator/pipeline/changes.hpp"
#include "orchestrator/run/run_dir.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <set>

namespace temper::cli {
namespace {

namespace fs = std::filesystem;
using orchestrator::Summary;

/// Bytes on disk. Files that vanish meanwhile and unreadable folders are skipped.
std::int64_t disk_use(const fs::path& folder) {
  std::int64_t bytes = 0;
  std::error_code error;
  fs::recursive_directory_iterator it(folder, fs::directory_options::skip_permission_denied, error);
  for (; !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    std::error_code gone;
    if (!it->is_regular_file(gone) || it->is_symlink(gone))
      continue;
    const auto size = static_cast<std::int64_t>(it->file_size(gone));
    bytes += gone ? 0 : size;
  }
  return bytes;
}

/// The state of a folder without a readable run; nullopt if it is unrelated to runs.
std::optional<std::string> broken_state(const fs::path& folder) {
  std::error_code ignored;
  const auto has = [&](const char* name) { return fs::exists(folder / name, ignored); };
  if (has("events.log"))
    return "broken";  // without a config.yaml
  if (has("config.yaml") || has(".lock") || has("logs"))
    return "not begun";  // a start that failed before its log
  return fs::is_empty(folder, ignored) ? std::optional<std::string>("empty") : std::nullopt;
}

/// Rows for the direct subfolders that find_runs() omits.
std::vector<RunRow> broken_rows(const fs::path& folder) {
  std::vector<RunRow> rows;
  std::error_code ignored;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->is_symlink(ignored)) {
      if (is_run(it->path()))
        rows.push_back({{}, it->path().string(), it->path().filename(), "link", 0});
      continue;
    }
    if (!it->is_directory(ignored) || is_run({folder, it->path().filename()}))
      continue;
    if (const auto state = broken_state(it->path())) {
      RunRow row;
      row.run = it->path().string();
      row.name = it->path().filename();
      row.state = *state;
      row.disk_bytes = disk_use(it->path());
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

RunRow row_of(const UntrustedFolder& run) {
  const fs::path folder = run.path();
  RunFiles files(folder.filename(), run);
  files.update();
  const bool without = files.state() == RunState::Unknown;  // It has no live.json yet.
  const bool running = without && orchestrator::RunDir(folder).in_progress();
  return {files.figures(),
          folder.string(),
          folder.filename(),
          std::string(name_of(running ? RunState::Running : files.state())),
          disk_use(folder)};
}

void sort_rows(std::vector<RunRow>& rows, std::string_view order) {
  const auto by = [&](auto key) { std::ranges::stable_sort(rows, std::greater{}, key); };
  if (order == "name")
    std::ranges::stable_sort(rows, {}, &RunRow::name);
  else if (order == "reward")
    by([](const RunRow& r) { return r.reward.value_or(-1e300); });
  else if (order == "speed")
    by(&RunRow::trained_per_s);
  else if (order == "disk")
    by(&RunRow::disk_bytes);
  else
    by(&RunRow::began);
}

std::string date_text(double began) {
  if (began <= 0)
    return "-";
  return fmt::format("{:%Y-%m-%d %H:%M}", fmt::localtime(static_cast<std::time_t>(began)));
}

void print_rows(const std::vector<RunRow>& rows, std::ostream& out) {
  if (rows.empty()) {
    out << "no runs\n";
    return;
  }
  std::size_t width = 4;
  for (const RunRow& r : rows)
    width = std::max(width, r.name.size());
  out << fmt::format("{:<{}}  {:<9} {:>16} {:>13} {:>9} {:>8} {:>9} {:>5} {:>9}\n",
                     "run",
                     width,
                     "state",
                     "began",
                     "steps",
                     "seconds",
                     "reward",
                     "tokens/s",
                     "busy",
                     "disk");
  for (const RunRow& r : rows) {
    out << fmt::format("{:<{}}  {:<9} {:>16} {:>13} {:>9.1f} {:>8} {:>9.0f} {:>4.0f}% {:>9}{}\n",
                       r.name,
                       width,
                       r.state,
                       date_text(r.began),
                       fmt::format("{}/{}", r.steps, r.steps_wanted),
                       r.wall_s,
                       r.reward ? fmt::format("{:.3f}", *r.reward) : "-",
                       r.trained_per_s,
                       r.busy * 100,
                       bytes_text(static_cast<double>(r.disk_bytes)),
                       r.alarms > 0 ? fmt::format("  {} alarms", r.alarms) : "");
  }
}

/// Removes a run by its name in the folder. Paths are refused, so that a typo removes nothing else.
Status remove_run(const fs::path& folder, const std::string& name) {
  const fs::path run = folder / name;
  if (name.empty() || name.find('/') != std::string::npos || name.starts_with('.') ||
      !fs::is_directory(run) || (!is_run(run) && !broken_state(run))) {
    return Error{ErrorCode::NotFound,
                 fmt::format("{} holds no run `{}`; `temper runs {}` lists them",
                             folder.string(),
                             name,
                             folder.string())};
  }
  TEMPER_TRY(const auto lock, orchestrator::RunDir(run).lock());
  std::error_code error;
  fs::remove_all(run, error);
  if (error)
    return Error{ErrorCode::Io, fmt::format("cannot remove {}: {}", run.string(), error.message())};
  return {};
}

// --- diff

using Flat = std::map<std::string, std::string>;

Result<Flat> config_of(const fs::path& run) {
  TEMPER_TRY(const std::string text, read_file(UntrustedFolder(run), "config.yaml"));
  const YamlDocument document((run / "config.yaml").string(), text, {});
  if (!document.issues().empty())
    return config_error(locate(document, document.issues()));
  Flat flat = orchestrator::flat_settings(text);
  flat.erase("run_dir");
  return flat;
}

using Figure = std::pair<std::string, std::optional<double>>;

std::vector<Figure> figures_of(const Summary& s) {
  const auto whole = [](auto n) { return static_cast<double>(n); };
  return {{"steps", whole(s.steps)},
          {"seconds", s.wall_s},
          {"reward, first", s.reward.first},
          {"reward, last", s.reward.last},
          {"reward, best", s.reward.best},
          {"tokens/s, generated", s.tokens.generated_per_s},
          {"tokens/s, trained", s.tokens.trained_per_s},
          {"tokens/s, effective", s.tokens.effective_per_s},
          {"tokens/s per card, trained", s.tokens.trained_per_s_per_card},
          {"tokens, wasted", whole(s.wasted_tokens)},
          {"tokens per price, trained", s.cost ? s.cost->tokens_per_price : std::nullopt},
          {"tokens per kWh, trained", s.cost ? s.cost->tokens_per_kwh : std::nullopt},
          {"cards", whole(s.cards)},
          {"busy share", s.utilization.busy},
          {"staleness, mean", s.staleness.mean},
          {"staleness, max", whole(s.staleness.max)},
          {"length, mean", s.lengths.mean},
          {"length, max", whole(s.lengths.max)},
          {"groups filtered", whole(s.groups.filtered)},
          {"groups failed", whole(s.groups.failed)},
          {"restarts", whole(s.restarts.size())},
          {"checkpoints", whole(s.checkpoints.saved)}};
}

struct Difference {
  std::string key;
  std::optional<std::string> a, b;
};
void describe(auto& v, Difference& d) {
  v.field(1, "key", d.key);
  v.field(2, "a", d.a);
  v.field(3, "b", d.b);
}
struct FigurePair {
  std::string name;
  std::optional<double> a, b, ratio;
};
void describe(auto& v, FigurePair& f) {
  v.field(1, "name", f.name);
  v.field(2, "a", f.a);
  v.field(3, "b", f.b);
  v.field(4, "ratio", f.ratio);
}
struct RunDifference {
  std::vector<Difference> config;
  std::vector<FigurePair> figures;
};
void describe(auto& v, RunDifference& d) {
  v.field(1, "config", d.config);
  v.field(2, "figures", d.figures);
}

Result<RunDifference> compare(const fs::path& a, const fs::path& b) {
  RunDifference out;
  TEMPER_TRY(const Flat before, config_of(a));
  TEMPER_TRY(const Flat after, config_of(b));
  std::set<std::string> keys;
  for (const Flat* flat : {&before, &after}) {
    for (const auto& [key, value] : *flat)
      keys.insert(key);
  }
  const auto value_in = [](const Flat& flat, const std::string& key) {
    const auto it = flat.find(key);
    return it == flat.end() ? std::nullopt : std::optional(it->second);
  };
  for (const std::string& key : keys) {
    if (Difference d{key, value_in(before, key), value_in(after, key)}; d.a != d.b)
      out.config.push_back(std::move(d));
  }
  TEMPER_TRY(const auto first, orchestrator::read_run(a));
  TEMPER_TRY(const auto second, orchestrator::read_run(b));
  const auto x = figures_of(first.summary), y = figures_of(second.summary);
  for (std::size_t i = 0; i < x.size(); ++i) {
    FigurePair pair{x[i].first, x[i].second, y[i].second, {}};
    if (pair.a && pair.b && *pair.a != 0)
      pair.ratio = *pair.b / *pair.a;
    if (pair.a || pair.b)
      out.figures.push_back(std::move(pair));
  }
  return out;
}

}  // namespace

int run_runs(const RunsOptions& options, std::ostream& out, std::ostream& err) {
  const fs::path folder = options.folder;
  if (!fs::is_directory(folder)) {
    err << fmt::format(
        "temper: {} is not a folder; `temper run` creates runs/ in its working folder\n",
        folder.string());
    return kBadInput;
  }
  for (const std::string& name : options.remove) {
    if (Status removed = remove_run(folder, name); !removed)
      return fail(removed.error(), err);
    err << fmt::format("removed {}\n", (folder / name).string());
  }
  if (!options.remove.empty())
    return 0;
  std::vector<RunRow> rows;
  for (const UntrustedFolder& run : find_runs({folder}))
    rows.push_back(row_of(run));
  for (RunRow& row : broken_rows(folder))
    rows.push_back(std::move(row));
  std::erase_if(rows, [&](const RunRow& r) {
    return r.name.find(options.filter) == std::string::npos && r.state != options.filter;
  });
  sort_rows(rows, options.sort);
  if (options.json)
    out << to_json(rows, JsonStyle::Pretty) << '\n';
  else
    print_rows(rows, out);
  return 0;
}

int run_diff(
    const std::string& a, const std::string& b, bool json, std::ostream& out, std::ostream& err) {
  const auto difference = compare(a, b);
  if (!difference)
    return fail(difference.error(), err);
  if (json) {
    out << to_json(*difference, JsonStyle::Pretty) << '\n';
    return 0;
  }
  out << fmt::format("{:<36} {:>16} {:>16}\n", "configuration", "a", "b");
  for (const Difference& d : difference->config)
    out << fmt::format("{:<36} {:>16} {:>16}\n", d.key, d.a.value_or("-"), d.b.value_or("-"));
  if (difference->config.empty())
    out << "identical\n";
  out << fmt::format("\n{:<36} {:>16} {:>16} {:>8}\n", "figures", "a", "b", "b/a");
  const auto number = [](std::optional<double> n) { return n ? fmt::format("{:.6g}", *n) : "-"; };
  for (const FigurePair& f : difference->figures) {
    out << fmt::format("{:<36} {:>16} {:>16} {:>8}\n",
                       f.name,
                       number(f.a),
                       number(f.b),
                       f.ratio ? fmt::format("{:.3f}", *f.ratio) : "-");
  }
  return 0;
}

Handler runs_command(Flags& flags) {
  const auto options = std::make_shared<RunsOptions>();
  flags.argument("folder", options->folder, "Folder of runs", Need::Optional);
  flags.text("--filter", options->filter, "Only runs whose name contains this, or in this state");
  flags.choice(
      "--sort",
      kRunOrders,
      [options](std::size_t chosen) { options->sort = kRunOrders[chosen]; },
      "Order of the rows (default: began, newest first)");
  flags.repeated("--delete", options->remove, "Delete this run and all its files (repeatable)");
  flags.json(options->json, "Print a list of JSON objects");
  return [options] { return run_runs(*options, std::cout, std::cerr); };
}

Handler diff_command(Flags& flags) {
  const auto a = std::make_shared<std::string>();
  const auto b = std::make_shared<std::string>();
  const auto json = std::make_shared<bool>(false);
  flags.argument("a", *a, "Run folder");
  flags.argument("b", *b, "Run folder to compare with");
  flags.json(*json);
  return [a, b, json] { return run_diff(*a, *b, *json, std::cout, std::cerr); };
}

}  // namespace temper::cli
