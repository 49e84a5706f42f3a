#include "orchestrator/cli/compare_command.hpp"

#include "core/files.hpp"
#include "core/json.hpp"
#include "orchestrator/explore/compare.hpp"
#include "orchestrator/explore/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <thread>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;

Result<std::vector<CompareRow>> compare(const CompareCommand& command, std::ostream& err) {
  CompareOptions options;
  options.config = command.config;
  options.sets = command.sets;
  TEMPER_TRY(options.policies, parse_policies(command.policies));
  TEMPER_TRY(options.etas, parse_etas(command.etas));
  options.steps = command.steps;
  options.evaluate.threads =
      command.threads > 0 ? command.threads
                          : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  options.evaluate.on_progress = [&](std::size_t done, std::size_t of) {
    err << fmt::format("{} of {}\n", done, of) << std::flush;
  };
  TEMPER_TRY(std::vector<CompareRow> rows, compare(options));
  if (!command.out.empty()) {
    const fs::path folder = command.out;
    TEMPER_TRY_STATUS(make_folder(folder));
    TEMPER_TRY_STATUS(
        write_file_atomically(folder / "compare.csv", to_csv(std::span<const CompareRow>(rows))));
    const std::string title = fs::path(command.config).stem().string() + ": staleness policies";
    TEMPER_TRY_STATUS(write_file_atomically(folder / "compare.svg", compare_svg(rows, title)));
  }
  return rows;
}

}  // namespace

int run_compare(const CompareCommand& command, std::ostream& out, std::ostream& err) {
  auto rows = compare(command, err);
  if (!rows) {
    err << "temper: " << rows.error().context << '\n';
    return 1;
  }
  if (command.json)
    out << to_json(*rows, JsonStyle::Pretty) << '\n';
  else
    out << compare_text(*rows);
  return 0;
}

}  // namespace temper::orchestrator
