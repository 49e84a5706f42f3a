#include "cli/run/setup_commands.hpp"

#include "actors/runtime/process.hpp"
#include "actors/task/prompts.hpp"
#include "cli/command/exit_code.hpp"
#include "core/files.hpp"
#include "core/json.hpp"
#include "orchestrator/model_source/model_package.hpp"
#include "orchestrator/model_source/model_source.hpp"
#include "orchestrator/pipeline/pipeline_config.hpp"
#include "orchestrator/start/doctor.hpp"
#include "orchestrator/start/start_run.hpp"
#include "sim_hw/catalog/catalog.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>

namespace temper::cli {
namespace {

namespace fs = std::filesystem;
using orchestrator::Finding;

constexpr std::string_view kStarter =
    R"(# Made by `temper init`. `temper check {file}` validates it, and `--all` prints every key;
# docs/reference/config.md explains the keys.
name: {name}
steps: 200                # training steps: policy updates, each makes a new policy version

task:
  kind: jsonl
  path: {task}            # one problem per line: {{"prompt": "12+34=", "answer": "46"}}
  held_out: {held_out:<13} # share of problems kept for evaluation, never trained on

# How a response is scored. `exact`: it equals the answer; `numeric`: its last number equals the
# answer's; `regex`: a pattern matches; `command`: your program scores it; `python`: your function
# scores it (called like a reward function of TRL).
verifier:
  kind: {verifier}

{model}
algorithm:
  name: grpo
  groups_per_update: 16   # prompts per step
  responses_per_group: 8  # responses per prompt
{rate}

sampling:
  temperature: 1.0
  max_new_tokens: 128     # longest response

# The oldest weights of a trained group are at most two steps old; 0 is synchronous.
staleness:
  bound: 2

# Devices: on local hardware, cores of this machine.
placement:
  mode: {mode}
  cards: {cards}
rollout:
  concurrency: 32         # responses generated at once

# Evaluation on held-out problems, every so many steps. The best weights are kept as RUN/best.
evaluation:
  every: 50
  problems: {problems}

checkpoint:
  every: 50
)";

constexpr std::string_view kOwnModel = R"(model:
  path: {}      # a Hugging Face model folder, a GGUF file, or smollm2
  context: 512            # longest prompt plus answer
)";
constexpr std::string_view kSmallModel =
    R"(# A small network with random weights; `path: FOLDER` names a Hugging Face model instead.
model:
  hidden: 64
  layers: 3
  context: 512            # longest prompt plus answer
  rope_base: 100          # short RoPE wavelengths, for short texts
pretrain:                 # supervised training on the answers up to this accuracy
  target_accuracy: 0.1
  max_steps: 500
)";

// A pretrained model needs a lower learning rate than a new network.
constexpr std::string_view kOwnRate =
    "  learning_rate: 1e-5     # for a model that is already trained";
constexpr std::string_view kSmallRate =
    R"(  learning_rate: 4e-4     # for a small new network; a pretrained model needs about 1e-5
  minibatches: 1          # optimizer updates per step)";

/// The problems of a file. Errors: it has none or cannot be read, or an answer violates the rule.
Result<std::unique_ptr<actors::PromptSource>> problems_of(
    const std::string& task,
    actors::AnswerRule rule = actors::AnswerRule::Any,
    double held_out = actors::TaskConfig().held_out) {
  actors::TaskConfig config;
  config.kind = actors::TaskKind::Jsonl;
  config.path = task;
  config.held_out = held_out;
  return actors::make_prompt_source(config, orchestrator::PipelineConfig().seed, {.rule = rule});
}

/// `exact` if most of the answers have no digit, otherwise `numeric`. None if the file of problems
/// cannot be read.
std::optional<actors::VerifierKind> verifier_for(const std::string& task) {
  constexpr std::uint64_t kRows = 100;
  const auto source = problems_of(task);
  if (!source)
    return std::nullopt;
  std::uint64_t numbers = 0;
  for (std::uint64_t i = 0; i < kRows; ++i) {
    const std::string answer = (*source)->train(i).answer;
    numbers += answer.find_first_of("0123456789") != std::string::npos ? 1U : 0U;
  }
  return 2 * numbers < kRows ? actors::VerifierKind::Exact : actors::VerifierKind::Numeric;
}

/// The share of held-out problems, and how many of them an evaluation uses.
struct EvaluationSplit {
  double share = 0.1;
  std::uint64_t problems = 100;
};

/// The smallest share that holds out at least kEnough problems, or the largest share if the file is
/// too small for that.
EvaluationSplit hold_out(const std::string& task) {
  constexpr std::uint64_t kEnough = 50;  // pass@1 over 50 problems: standard error about 7 points
  constexpr std::array kShares{0.1, 0.15, 0.2, 0.25, 0.3, 0.35};
  EvaluationSplit held;
  for (const double share : kShares) {
    const auto source = problems_of(task, actors::AnswerRule::Any, share);
    if (!source)
      return {};
    held.share = share;
    const std::uint64_t there = (*source)->held_out_size();
    held.problems = std::clamp<std::uint64_t>(there, 1, EvaluationSplit().problems);
    if (there >= kEnough)
      break;
  }
  return held;
}

void replace_first(std::string& text, std::string_view from, const std::string& to) {
  if (const std::size_t at = text.find(from); at != std::string::npos)
    text.replace(at, from.size(), to);
}

/// The shipped configuration of a model package, with the name of this file.
Result<std::string> shipped_starter(const InitOptions& options) {
  const fs::path configs = sim_hw::Catalog::shipped().configs();
  TEMPER_TRY(std::string text, read_file(configs / (options.model + ".yaml")));
  const std::string name = fs::path(options.file).stem().string();
  replace_first(text, fmt::format("name: {}\n", options.model), fmt::format("name: {}\n", name));
  replace_first(text, "path: tasks/", fmt::format("path: {}/", (configs / "tasks").string()));
  return text;
}

}  // namespace

int run_doctor(bool json, std::ostream& out) {
  const auto findings = orchestrator::examine_machine(orchestrator::worker_program().parent_path(),
                                                      sim_hw::Catalog::shipped().configs());
  if (json) {
    out << to_json(findings, JsonStyle::Pretty) << '\n';
  } else {
    for (const Finding& f : findings) {
      out << fmt::format("{:<8} {:<21} {}\n", name_of(f.state), f.what, f.found);
      if (!f.advice.empty())
        out << fmt::format("{:<8} {:<21} {}\n", "", "", "-> " + f.advice);
    }
  }
  return std::ranges::count(findings, Finding::State::Missing, &Finding::state) == 0 ? kDone
                                                                                     : kFound;
}

std::string starter_config(const InitOptions& options, std::size_t cores) {
  const std::string task = options.task.empty() ? "data/train.jsonl" : options.task;
  const bool small = options.model.empty();
  const std::string model =
      small ? std::string(kSmallModel) : fmt::format(kOwnModel, options.model);
  const EvaluationSplit held = hold_out(task);
  return fmt::format(
      kStarter,
      fmt::arg("file", options.file),
      fmt::arg("name", fs::path(options.file).stem().string()),
      fmt::arg("task", task),
      fmt::arg("held_out", held.share),
      fmt::arg("problems", held.problems),
      fmt::arg("verifier", name_of(verifier_for(task).value_or(actors::VerifierKind::Numeric))),
      fmt::arg("rate", small ? kSmallRate : kOwnRate),
      fmt::arg("model", model),
      fmt::arg("mode", cores > 1 ? "separate" : "colocated"),
      fmt::arg("cards", std::min<std::size_t>(cores, 2)));
}

int run_init(const InitOptions& options, std::ostream& out, std::ostream& err) {
  if (std::error_code ignored; fs::exists(options.file, ignored)) {
    err << fmt::format("temper: {} already exists; name another file\n", options.file);
    return kBadInput;
  }
  if (const auto found = orchestrator::find_model_folder(options.model); !found)
    return fail(found.error(), err, "temper: --model");
  const bool shipped =
      options.task.empty() && orchestrator::find_model_package(options.model).has_value();
  const auto text =
      shipped ? shipped_starter(options)
              : Result<std::string>(starter_config(options, actors::usable_cores().size()));
  const Status written = text ? write_file_atomically(options.file, *text) : Status(text.error());
  if (!written)
    return fail(written.error(), err);
  if (!options.task.empty()) {
    const auto verifier = verifier_for(options.task);
    const auto rule = !verifier                                  ? actors::AnswerRule::Any
                      : *verifier == actors::VerifierKind::Exact ? actors::AnswerRule::Text
                                                                 : actors::AnswerRule::Number;
    if (const auto read = problems_of(options.task, rule); !read)
      err << "temper: warning: --task: " << read.error().context << '\n';
  }
  out << fmt::format(
      "wrote {0}. Edit it, then:\n"
      "  temper check {0}\n  temper run {0}\n",
      options.file);
  return kDone;
}

Handler doctor_command(Flags& flags) {
  const auto json = std::make_shared<bool>(false);
  flags.json(*json, "Print a list of JSON objects");
  return [json] { return run_doctor(*json, std::cout); };
}

Handler init_command(Flags& flags) {
  const auto options = std::make_shared<InitOptions>();
  flags.argument("file", options->file, "YAML file to write");
  flags.text("--task", options->task, "JSONL file of problems with prompt and answer");
  flags.text("--model",
             options->model,
             "Hugging Face model folder, GGUF file, or smollm2 (default: a small new network)");
  return [options] { return run_init(*options, std::cout, std::cerr); };
}

}  // namespace temper::cli
