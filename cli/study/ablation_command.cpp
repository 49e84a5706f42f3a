#include "cli/study/ablation_command.hpp"

#include "cli/command/exit_code.hpp"
#include "core/json.hpp"
#include "core/text/table.hpp"
#include "sim_hw/ablation/ablation.hpp"

#include <fmt/format.h>

#include <iostream>
#include <memory>

namespace temper::cli {
namespace {

using sim_hw::AblationRow;

std::string terminal_table(const std::vector<AblationRow>& rows) {
  std::vector<std::vector<std::string>> cells{
      {"mechanism", "off", "on", "predicted", "published", ""}};
  for (const AblationRow& row : rows) {
    cells.push_back({row.mechanism,
                     row.off,
                     row.on,
                     sim_hw::effect_text(row.predicted),
                     row.published ? sim_hw::effect_text(*row.published) : "-",
                     std::string(sim_hw::agreement_text(row.agreement()))});
  }
  return bar_table(cells);
}

}  // namespace

int run_ablation(const AblationOptions& options, std::ostream& out, std::ostream& err) {
  sim_hw::Catalog catalog = sim_hw::Catalog::shipped();
  const Result<std::vector<AblationRow>> rows =
      sim_hw::moe_ablation(catalog, {options.expert_loads, options.samples});
  if (!rows)
    return fail(rows.error(), err);
  if (options.json) {
    out << to_json(*rows, JsonStyle::Pretty) << '\n';
    return 0;
  }
  if (options.markdown) {
    out << sim_hw::ablation_markdown(*rows);
    return 0;
  }
  out << terminal_table(*rows) << '\n';
  for (const AblationRow& row : *rows)
    out << fmt::format("{}\n  {}\n  {}\n", row.mechanism, row.conditions, row.why);
  return 0;
}

Handler ablation_command(Flags& flags) {
  const auto options = std::make_shared<AblationOptions>();
  flags.text("--expert-loads",
             options->expert_loads,
             "CSV of expert loads: one row per step, one column per expert (default: generated)");
  flags.text("--samples",
             options->samples,
             "CSV of document lengths with columns sample, length (default: generated)");
  flags.flag("--markdown",
             options->markdown,
             "Print the Markdown table of docs/reports/moe-mechanisms.md");
  flags.json(options->json, "Print one JSON array");
  return [options] { return run_ablation(*options, std::cout, std::cerr); };
}

}  // namespace temper::cli
