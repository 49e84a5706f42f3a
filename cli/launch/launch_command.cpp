#include "cli/launch/launch_command.hpp"

#include "cli/command/exit_code.hpp"
#include "cli/launch/slurm_script.hpp"
#include "core/files.hpp"
#include "core/loopback.hpp"
#include "orchestrator/pipeline/changed_yaml.hpp"
#include "orchestrator/pipeline/load.hpp"
#include "orchestrator/pipeline/resolve.hpp"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string_view>

extern char** environ;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables): POSIX

namespace temper::cli {
namespace {

using orchestrator::LaunchKind;
using orchestrator::PipelineConfig;

struct LaunchOptions {
  std::string where;
  std::vector<std::string> sets;
  LaunchPlan plan;
  std::string out;
  bool submit = false;
};

bool attaches(const PipelineConfig& c) {
  return c.rollout.launch == LaunchKind::Attach || c.trainer.launch == LaunchKind::Attach ||
         c.reference.launch == LaunchKind::Attach || c.reward.launch == LaunchKind::Attach;
}

Result<PipelineConfig> load(const std::string& file, const std::vector<std::string>& sets) {
  TEMPER_TRY(const orchestrator::LoadedConfig loaded, orchestrator::read_config(file, sets));
  if (const auto& issues = loaded.issues(); !issues.empty())
    return config_error(issues);
  return loaded.config();
}

/// The settings to add to the configuration so that it runs on several machines.
Result<std::vector<std::string>> settings_for(const LaunchOptions& o) {
  TEMPER_TRY(const PipelineConfig given, load(o.plan.config, o.sets));
  std::vector<std::string> sets = o.sets;
  const int workers = o.plan.nodes - 1;
  const bool chosen = attaches(given);
  if (given.transport.kind != orchestrator::TransportKind::Tcp)
    sets.push_back("transport.kind=tcp");
  if (is_loopback(given.transport.bind))
    sets.push_back("transport.bind=0.0.0.0");
  if (!chosen) {
    sets.push_back("rollout.launch=attach");
    sets.push_back(fmt::format("rollout.replicas={}", workers));
  }
  TEMPER_TRY(PipelineConfig config, load(o.plan.config, sets));
  const auto pipeline = orchestrator::resolve_cards(std::move(config));
  const auto attached = std::ranges::count_if(pipeline.slots, &orchestrator::ActorSpec::attached);
  if (attached > workers) {
    return invalid_input(fmt::format(
        "{}: {} actors need a worker, but {} nodes have only {} workers: use --nodes {} or "
        "configure fewer replicas",
        o.plan.config,
        attached,
        o.plan.nodes,
        workers,
        attached + 1));
  }
  return sets;
}

/// Whether a YAML block scalar preserves the text.
bool is_plain_text(std::string_view text) {
  constexpr std::array<std::string_view, 4> kOtherBreaks{
      "\xc2\x85", "\xe2\x80\xa8", "\xe2\x80\xa9", "\xef\xbb\xbf"};
  const auto is_plain = [](unsigned char c) { return c >= 0x20 || c == '\n' || c == '\t'; };
  return text.ends_with('\n') && !text.ends_with("\n\n") && std::ranges::all_of(text, is_plain) &&
         std::ranges::none_of(kOtherBreaks, [&](std::string_view each) {
           return text.find(each) != std::string_view::npos;
         });
}

/// Adds the configuration and its data to the manifest, as far as they fit into a ConfigMap.
void pack(const PipelineConfig& given, LaunchPlan& plan) {
  constexpr std::size_t kMost = std::size_t{512} << 10;  // of the 1 MiB that Kubernetes allows
  PipelineConfig config = given;
  std::size_t bytes = 0;
  const auto take = [&](const std::string& key, std::string& path, const std::string& name) {
    if (path.empty())
      return;
    const auto text = read_file(path);
    if (text && is_plain_text(*text) && bytes + text->size() <= kMost) {
      plan.packed.push_back({name, *text});
      bytes += text->size();
      path = fmt::format("{}/{}", kPackedFolder, name);
      return;
    }
    plan.not_packed.push_back(
        fmt::format("{}: {}{}", key, path, text ? fmt::format(" ({} bytes)", text->size()) : ""));
  };
  take("task.path", config.task.path, "task.jsonl");
  for (auto& [name, source] : config.task.sources) {
    take(
        fmt::format("task.sources.{}.path", name), source.path, fmt::format("task.{}.jsonl", name));
  }
  take("evaluation.path", config.evaluation.path, "evaluation.jsonl");
  if (!config.model.path.empty())
    plan.not_packed.push_back("model.path: " + config.model.path);
  std::error_code ignored;
  for (const auto& [name, term] : actors::terms_of(config.verifier)) {
    const std::string section = section_of(config.verifier, name);
    for (const std::string& word : term.command) {
      if (std::filesystem::is_regular_file(word, ignored))
        plan.not_packed.push_back(fmt::format("{}.command: {}", section, word));
    }
    if (!term.function.empty())
      plan.not_packed.push_back(section + ".function: the module of " + term.function);
    if (term.kind == actors::VerifierKind::Model)
      plan.not_packed.push_back(section + ".model.path: " + term.model.path);
    if (!term.judge.key_variable.empty())
      plan.not_packed.push_back(section + ".judge.key_variable: " + term.judge.key_variable);
  }
  plan.packed.insert(plan.packed.begin(),
                     PackedFile{"run.yaml", orchestrator::changed_yaml(config)});
  plan.config = fmt::format("{}/run.yaml", kPackedFolder);
}

/// Whether Kubernetes can name pods after it.
bool is_dns_label(const std::string& name) {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyz0123456789-";
  constexpr std::size_t kLongest = 40;  // of 63; JobSet adds "-orchestrator-0-0"
  return !name.empty() && name.size() <= kLongest && name.front() != '-' && name.back() != '-' &&
         name.find_first_not_of(kAllowed) == std::string::npos;
}

/// Runs `program FILE`; the program inherits stdout and stderr.
Status submit(const char* program, std::vector<std::string> words) {
  std::vector<char*> raw;
  raw.reserve(words.size() + 1);
  for (std::string& word : words)
    raw.push_back(word.data());
  raw.push_back(nullptr);
  pid_t pid = 0;
  if (const int error = ::posix_spawnp(&pid, program, nullptr, nullptr, raw.data(), environ);
      error != 0) {
    return io_error(fmt::format("cannot run {}", program), error);
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return Error{ErrorCode::Unavailable, fmt::format("{} failed; its message is above", program)};
  return {};
}

Status launch(LaunchOptions o) {
  if (o.where != "slurm" && o.where != "k8s")
    return invalid_input(fmt::format("temper launch: expected slurm or k8s, found `{}`", o.where));
  if (o.plan.nodes < 2)
    return invalid_input(fmt::format(
        "--nodes: expected at least 2 (one runs the orchestrator), found {}", o.plan.nodes));
  const bool slurm = o.where == "slurm";
  if (!slurm && (o.plan.image.empty() || o.plan.claim.empty())) {
    return invalid_input(
        "temper launch k8s needs --image IMAGE and --claim NAME, a volume claim that all pods can "
        "write to");
  }
  TEMPER_TRY(o.plan.sets, settings_for(o));
  TEMPER_TRY(const PipelineConfig config, load(o.plan.config, o.plan.sets));
  o.plan.name = config.name;
  if (!slurm && !is_dns_label(config.name)) {
    return invalid_input(
        fmt::format("name: \"{}\" is not a valid JobSet name; choose one of at most 40 "
                    "lower-case letters, digits and '-', e.g. --set name=my-run",
                    config.name));
  }
  if (o.plan.run_dir.empty())
    o.plan.run_dir = slurm ? "runs/" + config.name : o.plan.mount + "/" + config.name;
  o.plan.command =
      fmt::format("temper launch {} {} --nodes {}", o.where, o.plan.config, o.plan.nodes);
  if (!slurm) {
    pack(config, o.plan);
    o.plan.sets.clear();  // the packed configuration contains them
  }
  const std::string text = slurm ? slurm_script(o.plan)
                                 : config_map_manifest(o.plan) + "---\n" + jobset_manifest(o.plan);
  if (o.out.empty() && !o.submit) {
    std::fputs(text.c_str(), stdout);
    return {};
  }
  if (o.out.empty())
    o.out = fmt::format("{}.{}", config.name, slurm ? "sbatch" : "jobset.yaml");
  TEMPER_TRY_STATUS(write_file_atomically(o.out, text));
  fmt::print("{}\n", o.out);
  std::fflush(stdout);
  if (!o.submit)
    return {};
  return slurm ? submit("sbatch", {"sbatch", o.out})
               : submit("kubectl", {"kubectl", "apply", "-f", o.out});
}

}  // namespace

Handler launch_command(Flags& flags) {
  const auto o = std::make_shared<LaunchOptions>();
  flags.argument("where", o->where, "slurm (an sbatch script) or k8s (a JobSet)");
  flags.pipeline(o->plan.config, o->sets);
  flags.number("--nodes", o->plan.nodes, "Number of machines; one runs the orchestrator");
  flags.text(
      "--run-dir", o->plan.run_dir, "Folder of the run, on a file system that all machines share");
  flags.text("--program", o->plan.program, "Path of temper on the machines");
  flags.text("--time", o->plan.time, "slurm: time limit in sbatch's format");
  flags.text("--partition", o->plan.partition, "slurm: partition");
  flags.number("--gpus-per-node", o->plan.gpus, "GPUs on each worker's machine");
  flags.number("--warning",
               o->plan.warning,
               "Seconds before the time limit at which the run saves a checkpoint");
  flags.text("--image", o->plan.image, "k8s: container image with temper");
  flags.text("--claim", o->plan.claim, "k8s: persistent volume claim that all pods mount");
  flags.text("--mount", o->plan.mount, "k8s: mount path of the claim");
  flags.text("--out",
             o->out,
             "File to write (default: print; with --submit, NAME.sbatch or NAME.jobset.yaml)");
  flags.flag("--submit", o->submit, "Write the file and submit it with sbatch or kubectl");
  return [o] {
    const Status status = launch(*o);
    return status ? kDone : fail(status.error());
  };
}

}  // namespace temper::cli
