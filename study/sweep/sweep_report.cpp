#include "study/sweep/sweep_report.hpp"

#include "core/json.hpp"
#include "core/text/csv.hpp"
#include "core/text/numbers.hpp"
#include "core/text/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <span>

namespace temper::study {
namespace {

/// Statistics over the runs of a cell that have a value; empty if none has one.
struct SeedRange {
  std::size_t count = 0;
  double sum = 0, least = 0, most = 0;

  void add(double value) {
    least = count == 0 ? value : std::min(least, value);
    most = count == 0 ? value : std::max(most, value);
    sum += value;
    ++count;
  }
  double mean() const { return sum / static_cast<double>(count); }
};

template <class T>
std::optional<double> number(const T& value) {
  return static_cast<double>(value);
}
template <class T>
std::optional<double> number(const std::optional<T>& value) {
  return value ? number(*value) : std::nullopt;
}

/// Over the runs that ran; `get` is a member or a function of a run.
template <class Get>
SeedRange range_of(const SweepCell& cell, Get get) {
  SeedRange out;
  for (const SweepRun& run : cell.runs) {
    if (const auto value = number(std::invoke(get, run)); value && run.end == SweepEnd::Ran)
      out.add(*value);
  }
  return out;
}

/// Runs of less than ten seconds are local ones, which are measured finely enough.
int time_decimals(const SeedRange& s) {
  return s.count > 0 && s.mean() < 10 ? 2 : 1;
}

/// "51.2" or, if several differ, "51.2 (50.1..52.0)"; "-" if there is none; adds how many have a
/// value if not all do.
std::string shown(const SeedRange& s, std::size_t of, int decimals) {
  if (s.count == 0)
    return "-";
  std::string out = fmt::format("{:.{}f}", s.mean(), decimals);
  const std::string least = fmt::format("{:.{}f}", s.least, decimals);
  const std::string most = fmt::format("{:.{}f}", s.most, decimals);
  if (least != most)
    out += fmt::format(" ({}..{})", least, most);
  if (s.count < of)
    out += fmt::format(" {} of {}", s.count, of);
  return out;
}

/// A column of figures: its head, and its text for a cell that ran.
struct Column {
  std::string head;
  std::function<std::string(const SweepCell&)> text;
};

/// The mean over the seeds.
template <class Get>
Column mean_column(
    std::string head, Get get, int decimals, double factor = 1, const char* unit = "") {
  return {std::move(head), [=](const SweepCell& cell) {
            return fmt::format("{:.{}f}{}", factor * range_of(cell, get).mean(), decimals, unit);
          }};
}

/// The mean over the seeds, in thousands.
template <class Get>
Column thousands_column(std::string head, Get get) {
  return {std::move(head),
          [=](const SweepCell& cell) { return thousands_text(range_of(cell, get).mean(), 1); }};
}

/// The mean and the range; `decimals`: none for a time.
template <class Get>
Column range_column(std::string head, Get get, std::optional<int> decimals = {}) {
  return {std::move(head), [=](const SweepCell& cell) {
            const SeedRange range = range_of(cell, get);
            const std::size_t ran = range_of(cell, &SweepRun::seconds).count;
            return shown(range, ran, decimals.value_or(time_decimals(range)));
          }};
}

bool learns(const SweepCell& cell) {
  return range_of(cell, &SweepRun::final_reward).count > 0;
}

bool is_evaluated(const SweepCell& cell) {
  return range_of(cell, &SweepRun::held_out).count > 0;
}

std::vector<Column> columns_of(const Sweep& sweep) {
  std::vector<Column> out;
  if (!sweep.any.empty()) {
    out.push_back({"refused", [](const SweepCell& cell) {
                     return fmt::format("{} of {}", cell.refused, cell.tried);
                   }});
  }
  if (sweep.interval == Sweep::Interval::Steady) {
    out.push_back(range_column("s/update", [](const SweepRun& run) {
      return run.seconds / static_cast<double>(run.updates);
    }));
  } else {
    out.push_back(range_column("time, s", &SweepRun::seconds));
  }
  out.push_back(thousands_column("tokens/s", &SweepRun::tokens_per_s));
  for (const auto& [head, field] : {std::pair("tokens/price", &SweepRun::tokens_per_price),
                                    std::pair("tokens/kWh", &SweepRun::tokens_per_kwh)}) {
    const auto has_any = [field = field](const SweepCell& cell) {
      return range_of(cell, field).count > 0;
    };
    if (std::ranges::any_of(sweep.cells, has_any))
      out.push_back(thousands_column(head, field));
  }
  out.push_back(mean_column("busy", &SweepRun::busy, 1, 100, " %"));
  out.push_back({"max s", [](const SweepCell& cell) {
                   return fmt::format("{:.0f}", range_of(cell, &SweepRun::staleness_max).most);
                 }});
  out.push_back(mean_column("mean s", &SweepRun::staleness_mean, 2));
  out.push_back(mean_column("wasted", &SweepRun::wasted, 1, 100, " %"));
  out.push_back(mean_column("groups evicted", &SweepRun::groups_evicted, 0));
  out.push_back(mean_column("trained length", &SweepRun::trained_length, 0));
  out.push_back({"begun length", [](const SweepCell& cell) {
                   const double begun = range_of(cell, &SweepRun::begun_length).mean();
                   return begun > 0 ? fmt::format("{:.0f}", begun) : "-";
                 }});
  out.push_back(mean_column("bias", &SweepRun::bias, 3));
  if (sweep.layouts == SweepOptions::Layouts::Fitted) {
    out.push_back({"trainer", [](const SweepCell& cell) { return cell.runs.front().trainer; }});
    out.push_back(mean_column("KV share", &SweepRun::kv_share, 2));
  }
  if (std::ranges::any_of(sweep.cells, learns)) {
    const double target = sweep.target_reward;
    out.push_back(range_column("final reward", &SweepRun::final_reward, 3));
    out.push_back(range_column(fmt::format("steps to {}", target), &SweepRun::steps_to_target, 0));
    out.push_back(range_column(fmt::format("time to {}, s", target), &SweepRun::seconds_to_target));
  }
  if (std::ranges::any_of(sweep.cells, is_evaluated)) {
    out.push_back(range_column("held-out", &SweepRun::held_out, 3));
    out.push_back(range_column("best held-out", &SweepRun::best_held_out, 3));
  }
  return out;
}

std::string setting_of(const Sweep& sweep, const SweepCell& cell) {
  return setting_text(short_names(keys_of(sweep.over, sweep.any)), cell.values);
}

std::string notes(const Sweep& sweep) {
  std::string out;
  const std::size_t seeds = sweep.cells.front().runs.size();
  if (seeds > 1) {
    out += fmt::format(
        "\nValues are means over {} seeds, with (least..most) in parentheses; max s is "
        "the largest.\n",
        seeds);
    for (const SweepCell& cell : sweep.cells) {
      const std::size_t ran = range_of(cell, &SweepRun::seconds).count;
      if (ran > 0 && ran < seeds)
        out += fmt::format("{}: {} of {} seeds.\n", setting_of(sweep, cell), ran, seeds);
    }
  }
  if (std::ranges::any_of(sweep.cells, learns)) {
    out += fmt::format(
        "\nFinal reward: mean over the last tenth of the updates. To {}: the first update at which "
        "the mean over {} updates reaches it.\n",
        sweep.target_reward,
        kRewardWindow);
  }
  if (std::ranges::any_of(sweep.cells, is_evaluated))
    out += "\nHeld-out: pass@1 of the last evaluation, and of the best one.\n";
  return out;
}

std::string reasons(const Sweep& sweep) {
  std::string not_run, failed;
  for (const SweepCell& cell : sweep.cells) {
    const std::string setting = setting_of(sweep, cell);
    for (const SweepRun& run : cell.runs) {
      if (run.end == SweepEnd::Failed) {
        failed += fmt::format("  {} seed {}: {}{}{}\n",
                              setting,
                              run.seed,
                              run.reason,
                              run.folder.empty() ? "" : "; ",
                              run.folder);
      }
    }
    const auto left_out = std::ranges::count(cell.runs, SweepEnd::NotRun, &SweepRun::end);
    if (left_out == std::ssize(cell.runs)) {  // For the same reason.
      not_run += fmt::format("  {}: {}\n", setting, cell.runs.front().reason);
      continue;
    }
    for (const SweepRun& run : cell.runs) {
      if (run.end == SweepEnd::NotRun)
        not_run += fmt::format("  {} seed {}: {}\n", setting, run.seed, run.reason);
    }
  }
  return (not_run.empty() ? "" : "\nnot run\n" + not_run) +
         (failed.empty() ? "" : "\nfailed\n" + failed);
}

/// A run with the values of its cell by key.
struct RunWithSetting {
  std::map<std::string, std::string> setting;
  SweepRun run;
};
void describe(auto& v, RunWithSetting& r) {
  v.field(100, "setting", r.setting);
  describe(v, r.run);
}

}  // namespace

std::string sweep_text(const Sweep& sweep) {
  const std::vector<Column> columns = columns_of(sweep);
  std::vector<std::vector<std::string>> table{short_names(keys_of(sweep.over, sweep.any))};
  for (const Column& column : columns)
    table.front().push_back(column.head);
  for (const SweepCell& cell : sweep.cells) {
    std::vector<std::string>& line = table.emplace_back(cell.values);
    const bool ran = mean_of(cell, &SweepRun::seconds).has_value();
    for (const Column& column : columns)
      line.push_back(ran ? column.text(cell) : "-");
  }
  return bar_table(table) + notes(sweep) + reasons(sweep);
}

std::string sweep_csv(const Sweep& sweep) {
  std::string keys = csv_line(keys_of(sweep.over, sweep.any));
  keys.back() = ',';  // was the line break
  std::string out;
  for (const SweepCell& cell : sweep.cells) {
    std::string values = csv_line(cell.values);
    values.back() = ',';
    for (const SweepRun& run : cell.runs) {
      const std::string csv = to_csv(std::span(&run, 1));
      const std::size_t head = csv.find('\n') + 1;
      if (out.empty())
        out = keys + csv.substr(0, head);
      out += values + csv.substr(head);
    }
  }
  return out;
}

std::string sweep_json(const Sweep& sweep) {
  const std::vector<std::string> keys = keys_of(sweep.over, sweep.any);
  std::vector<RunWithSetting> rows;
  for (const SweepCell& cell : sweep.cells) {
    std::map<std::string, std::string> setting;
    for (std::size_t i = 0; i < keys.size(); ++i)
      setting[keys[i]] = cell.values[i];
    for (const SweepRun& run : cell.runs)
      rows.push_back({setting, run});
  }
  return to_json(rows, JsonStyle::Pretty);
}

}  // namespace temper::study
