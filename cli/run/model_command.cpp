#include "cli/run/model_command.hpp"

#include "actors/guard/executable.hpp"
#include "cli/command/exit_code.hpp"
#include "core/files.hpp"
#include "core/json.hpp"
#include "core/yaml.hpp"
#include "orchestrator/model_comparison/compare_model.hpp"
#include "orchestrator/model_export/model_description.hpp"
#include "orchestrator/model_export/model_export.hpp"
#include "orchestrator/model_source/model_source.hpp"
#include "orchestrator/start/start_run.hpp"
#include "sim_hw/model/hf_config.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <memory>

namespace temper::cli {
namespace {

Status write_planner_model(const std::string& from, const std::string& to) {
  TEMPER_TRY(sim_hw::ModelSpec model, sim_hw::model_of_config_file(from));
  std::string out;
  YamlWriter(out).write_root(model);
  if (!to.empty())
    return write_file_atomically(to, out);
  fmt::print("{}", out);
  return {};
}

/// Exit code 3 if Temper and transformers differ.
int run_comparison(const ModelOptions& options) {
  orchestrator::ignore_write_signals();
  const auto folder = orchestrator::find_model_folder(options.folder);
  if (!folder)
    return fail(folder.error());
  orchestrator::CompareOptions compare;
  compare.name = std::filesystem::weakly_canonical(options.folder).filename().string();
  compare.folder = *folder;
  compare.ignore = options.ignore;
  compare.python = actors::default_python();
  compare.worker = orchestrator::worker_program();
  const auto found = orchestrator::compare_model(compare);
  if (!found) {
    const int code = fail(found.error());
    return found.error().code == ErrorCode::Unavailable ? kStopped : code;
  }
  if (options.json)
    fmt::print("{}\n", to_json(*found, JsonStyle::Pretty));
  else
    fmt::print("{}", orchestrator::to_text(*found));
  return found->agrees ? kDone : kFound;
}

}  // namespace

int run_export(const ExportOptions& options) {
  auto what = orchestrator::parse_export_source(options.run);
  if (!what)
    return fail(what.error());
  what->to = options.to;
  what->type = from_name<actors::StoredType>(options.type);
  what->merge = options.merge;
  const auto exported = orchestrator::export_model(*what);
  if (!exported)
    return fail(exported.error());
  fmt::print("exported {}step {} of {} as {} to {}\n",
             exported->adapter ? "the adapter of " : "",
             exported->version,
             exported->from.string(),
             name_of(exported->type),
             options.to);
  const auto& [changed, lost] = exported->rounding;
  constexpr double kWorthAWord = 0.1;
  if (static_cast<double>(lost) > kWorthAWord * static_cast<double>(changed)) {
    fmt::print(
        stderr,
        "temper: warning: {:.0f} % of the weights that training changed differ from the base by "
        "less than bfloat16 can represent, so the export loses these changes; --dtype float32 "
        "keeps them\n",
        100 * static_cast<double>(lost) / static_cast<double>(changed));
  }
  return 0;
}

int run_model(const ModelOptions& options) {
  const bool imports = options.folder == "import" && !options.file.empty();
  if (!imports && !options.file.empty()) {
    return fail(invalid_input(fmt::format(
        "temper model: expected one folder, found also {}; to convert a config.json: temper model "
        "import {}",
        options.file,
        options.file)));
  }
  if (options.compare && (imports || options.yaml || !options.out.empty()))
    return fail(invalid_input("--compare: expected without `import`, --planner and --out"));
  if (options.compare)
    return run_comparison(options);
  if (imports || options.yaml) {
    const auto from = imports ? Result<std::filesystem::path>(options.file)
                              : orchestrator::find_model_folder(options.folder);
    const Status written =
        from ? write_planner_model(from->string(), options.out) : Status(from.error());
    return written ? 0 : fail(written.error());
  }
  if (!options.out.empty())
    return fail(invalid_input("--out: expected together with `import` or --planner"));
  const auto description = orchestrator::describe_model(options.folder, options.ignore);
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
  flags.argument("run", options->run, "Run folder, or RUN@STEP for an earlier checkpoint");
  flags.argument(
      "folder", options->to, "Folder to write: a model, or the adapter of a run with model.lora");
  std::vector<std::string> names;
  names.reserve(EnumNames<actors::StoredType>::value.size());
  for (const auto& [type, name] : EnumNames<actors::StoredType>::value)
    names.emplace_back(name);
  flags.choice(
      "--dtype",
      names,
      [options, names](std::size_t i) { options->type = names[i]; },
      "Data type of the weights (default: that of the base model; float32 for an adapter)");
  flags.flag("--merge",
             options->merge,
             "For a run with model.lora: write the base with the adapter merged into it, not a "
             "folder of peft");
  return [options] { return run_export(*options); };
}

Handler model_command(Flags& flags) {
  const auto options = std::make_shared<ModelOptions>();
  flags.argument("folder",
                 options->folder,
                 "Model folder, GGUF file or smollm2 (for --planner also a config.json), or the "
                 "word `import`");
  flags.argument("file",
                 options->file,
                 "After `import`: a config.json to convert, as --planner does",
                 Need::Optional);
  flags.json(options->json);
  flags.list("--ignore", options->ignore, "Keys of config.json to ignore, as in model.ignore");
  flags.flag("--compare",
             options->compare,
             "Compare log-probabilities, token ids and chats with transformers; exit code 3 if "
             "they differ");
  flags.flag("--planner",
             options->yaml,
             "Print the model in the format of configs/models/, for simulation.model and plan");
  flags.text("--out", options->out, "File for the output of --planner or `import`");
  return [options] { return run_model(*options); };
}

}  // namespace temper::cli
