#include "orchestrator/start/machine_rules.hpp"

#include "actors/model_folder/model_folder.hpp"
#include "actors/runtime/process.hpp"
#include "actors/transport/ipc_folder.hpp"
#include "orchestrator/pipeline/message_sizes.hpp"
#include "orchestrator/pipeline/model_section.hpp"
#include "orchestrator/pipeline/teachers.hpp"
#include "orchestrator/run/evaluation_source.hpp"
#include "orchestrator/run/problem_sources.hpp"
#include "orchestrator/run/run_dir.hpp"
#include "orchestrator/start/programs.hpp"
#include "orchestrator/start/python_imports.hpp"
#include "orchestrator/start/start_run.hpp"
#include "orchestrator/start/verifier_needs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;

/// Folder of the tokenizer: the run folder, once the run has started.
fs::path base_of(const PipelineConfig& config) {
  const fs::path own = RunDir(config.run_dir).base();
  std::error_code ignored;
  return !config.run_dir.empty() && fs::exists(own, ignored) ? own : fs::path(config.model.path);
}

/// Error: no run can start from the weights in model.path. A started run has its own copy.
Status check_model(const PipelineConfig& config) {
  if (config.policy != actors::PolicyKind::Torch || config.model.path.empty() ||
      base_of(config) != config.model.path)
    return {};
  TEMPER_TRY(const auto folder, actors::ModelFolder::open(config.model.path, config.model.ignore));
  TEMPER_TRY(const auto layout, actors::Layout::make(config.model, 0));
  return folder.check(layout);
}

/// Adds each line of an error about a file as an issue at the key that names the file, or at
/// task.template.
void blame(std::string key, std::string_view context, std::vector<BrokenRule>& broken) {
  if (context.starts_with(actors::kTemplateKey)) {
    key = "task.template";
    context.remove_prefix(actors::kTemplateKey.size());
  }
  while (!context.empty()) {
    const std::size_t end = std::min(context.find('\n'), context.size());
    broken.push_back({{key}, std::string(context.substr(0, end))});
    context.remove_prefix(std::min(end + 1, context.size()));
  }
}

/// The longest prompt of training and evaluation. None: `broken` has the reasons.
std::optional<Tokens> longest_prompt(const PipelineConfig& config,
                                     std::vector<BrokenRule>& broken) {
  const auto prompts =
      actors::make_prompt_source(config.task, config.seed, prompt_options(config, base_of(config)));
  const std::string task = config.task.sources.empty() ? "task.path" : "task.sources";
  if (!prompts) {
    blame(task, prompts.error().context, broken);
  } else if (const auto plan = problem_plan(config, **prompts); !plan) {
    blame("task.set_aside", plan.error().context, broken);
  } else if (const auto unused = unused_teacher(*plan)) {
    broken.push_back({{"reference.teachers." + *unused},
                      fmt::format("no training problem names this teacher in the column `{}` "
                                  "(task.teacher_column); remove it, or add problems",
                                  config.task.teacher_column)});
  }
  const auto tokenizer = tokenizer_of(config, base_of(config));
  if (!tokenizer)
    blame("model.path", tokenizer.error().context, broken);
  if (!prompts || !tokenizer)
    return std::nullopt;
  const auto longest = (*prompts)->longest_prompt(*tokenizer);
  if (!longest)
    blame(task, longest.error().context, broken);
  Tokens most = longest ? *longest : Tokens(0);
  if (config.evaluation.every > 0) {
    const std::string key =
        config.evaluation.path.empty() ? "evaluation.problems" : "evaluation.path";
    const auto problems = make_evaluation_source(config, base_of(config));
    const auto longest_problem =
        problems ? (*problems)->longest_prompt(*tokenizer) : Result<Tokens>(problems.error());
    if (!longest_problem)
      blame(key, longest_problem.error().context, broken);
    else
      most = std::max(most, *longest_problem);
  }
  return broken.empty() ? std::optional(most) : std::nullopt;
}

}  // namespace

std::vector<BrokenRule> rules_of_this_machine(const PipelineConfig& config) {
  if (draws_rewards(config))
    return missing_programs(config);
  if (Status whole = check_model(config); !whole)
    return {{{"model.path"}, whole.error().context}};
  for (const Teacher& teacher : teachers_of(config)) {
    if (Status whole = check_reference_model(config, teacher); !whole)
      return {{{teacher.model_key()}, whole.error().context}};
  }
  std::vector<BrokenRule> broken;
  if (const auto longest = longest_prompt(config, broken)) {
    broken = validate(config, *longest);
    if (!is_simulated(config)) {
      const MessageSizes sizes = message_sizes(config, *longest);
      if (auto rule = check_head_memory(sizes, memory_here()))
        broken.push_back(*std::move(rule));
    }
  }
  if (config.transport.kind == TransportKind::Ipc) {
    if (Status fits = actors::check_ipc_folder(); !fits)
      broken.push_back({{"transport.kind"}, fits.error().context});
  }
  std::vector<BrokenRule> missing = missing_programs(config);
  if (missing.empty())
    missing = broken_imports(config);
  std::ranges::move(missing, std::back_inserter(broken));
  std::ranges::move(missing_for_verifier(config), std::back_inserter(broken));
  const auto cores = static_cast<std::int32_t>(actors::usable_cores().size());
  if (config.hardware == HardwareKind::Local && cards_here(config) > cores) {
    broken.push_back(
        {{"placement.cards"},
         fmt::format("must be at most {}, the usable cores of this machine, found {}{}",
                     cores,
                     config.placement.cards,
                     cores == 1 ? "; also set placement.mode to colocated" : "")});
  }
  return broken;
}

std::int32_t cards_here(const PipelineConfig& config) {
  const ResolvedPipeline pipeline = resolve_cards(config);
  if (std::ranges::none_of(pipeline.slots, &ActorSpec::attached))
    return config.placement.cards;
  std::int32_t most = 0;
  for (const ActorSpec& slot : pipeline.slots) {
    for (const CardId card : slot.cards) {
      if (!slot.attached)
        most = std::max(most, static_cast<std::int32_t>(card.value()) + 1);
    }
  }
  return most;
}

}  // namespace temper::orchestrator
