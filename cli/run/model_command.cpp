#include "cli/run/model_command.hpp"

#include "cli/command/exit_code.hpp"
#include "core/json.hpp"
#include "core/yaml.hpp"
#include "orchestrator/model_export/model_description.hpp"
#include "orchestrator/model_export/model_export.hpp"
#include "sim_hw/model/hf_config.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <memory>

namespace temper::cli {
namespace {}  // namespace

int run_export(const ExportOptions& options) {
  auto what = orchestrator::parse_export_source(options.run);
  if (!what)
    return fail(what.error());
  what->to = options.to;
  what->type = from_name<actors::StoredType>(options.type);
  const auto exported = orchestrator::export_model(*what);
  if (!exported)
    return fail(exported.error());
  fmt::print("version {} of {} as {} in {}\n",
             exported->version,
             exported->from.string(),
             name_of(exported->type),
             options.to);
  return 0;
}

int run_model(const ModelOptions& options) {
  if (options.yaml) {
    const auto model = sim_hw::model_of_config_file(options.folder);
    if (!model)
      return fail(model.error());
    std::string out;
    YamlWriter(out).write_root(*model);
    fmt::print("{}", out);
    return 0;
  }
  const auto description = orchestrator::describe_model(options.folder);
  if (!description)
    return fail(description.error());
  if (options.json)
    fmt::print("{}\n", to_json(*description, JsonStyle::Pretty));
  else
    fmt::print("{}", orchestrator::to_text(*description));
  return 0;
}

Handler export_command(Flags& flags) {
  const auto options = std::make_shared<ExportOptions>();
  flags.argument("run", options->run, "Folder of the run, or RUN@STEP for an earlier checkpoint");
  flags.argument("folder", options->to, "Folder to write");
  std::vector<std::string> names;
  names.reserve(EnumNames<actors::StoredType>::value.size());
  for (const auto& [type, name] : EnumNames<actors::StoredType>::value)
    names.emplace_back(name);
  flags.choice(
      "--dtype",
      names,
      [options, names](std::size_t i) { options->type = names[i]; },
      "How weights are stored; unless given, as in the model that the run began with");
  return [options] { return run_export(*options); };
}

Handler model_command(Flags& flags) {
  const auto options = std::make_shared<ModelOptions>();
  flags.argument(
      "folder", options->folder, "Folder of the model; for --planner also its config.json");
  flags.json(options->json);
  flags.flag("--planner",
             options->yaml,
             "As a file of configs/models/, for `simulation.model` and `temper plan`");
  return [options] { return run_model(*options); };
}

}  // namespace temper::cli
