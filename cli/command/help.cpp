#include "cli/command/help.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace temper::cli {
namespace {

/// The examples at the end of `temper COMMAND --help`.
constexpr std::pair<std::string_view, std::string_view> kExamples[] = {
    {"run", "configs/quickstart.yaml --dashboard"},
    {"run", "configs/quickstart.yaml --set staleness.bound=0"},
    {"run", "--resume runs/first"},
    {"run", "configs/cm384_pangu.yaml --driver in-process"},
    {"check", "configs/quickstart.yaml --set rollout.replicas=2"},
    {"init", "my-task.yaml --task data/train.jsonl --model models/qwen3-0.6b"},
    {"scale", "runs/first rollout=3"},
    {"report", "runs/first"},
    {"report", "runs/first --html"},
    {"report", "runs/first --require 'reward.last>=0.9'"},
    {"watch", "runs/first"},
    {"runs", "--sort reward --filter finished"},
    {"runs", "--delete first"},
    {"diff", "runs/first runs/second"},
    {"samples", "runs/first --step 40 --worst"},
    {"serve", "runs"},
    {"serve", "runs/first --address 0.0.0.0:8080"},
    {"audit", "runs/first"},
    {"eval", "runs/first@best"},
    {"eval", "runs/first@200 --task data/test.jsonl --samples 8"},
    {"fsck", "runs/first --repair"},
    {"worker", "--connect /shared/run/endpoint --key /shared/run/keys/worker.key"},
    {"keys", "make /shared/run --for rollout --count 8"},
    {"keys", "revoke /shared/run worker"},
    {"launch", "slurm configs/quickstart.yaml --nodes 4 --run-dir /shared/run"},
    {"launch", "k8s my.yaml --nodes 4 --image registry/temper:1 --claim shared"},
    {"replay", "runs/first"},
    {"events", "runs/first | head"},
    {"export", "runs/first exported"},
    {"model", "models/qwen3-0.6b"},
    {"protocol", "--json"},
    {"doctor", "--json"},
    {"cost", "kind=gemm hardware=nvidia-h200 m=8192 n=8192 k=8192 --explain"},
    {"plan", "task=train model=qwen3-8b hardware=nvidia-h100 batch=64 seq=4096"},
    {"tune", "configs/cm384_pangu.yaml --max-staleness 2 --out runs/tuned"},
    {"sweep", "configs/cm384_pangu.yaml --over staleness.bound=0,1,2,4"},
    {"sweep", "configs/quickstart.yaml --over staleness.bound=0,2 --seeds 1,2"},
    {"ladder", "configs/cm384_pangu.yaml"},
    {"faults", "configs/cm384_pangu.yaml"},
    {"measure", "configs/quickstart.yaml"},
    {"forecast", "configs/quickstart.yaml --over staleness.bound=0,1,2,4"},
    {"whatif", "runs/first --set staleness.bound=4"},
    {"whatif", "runs/first --set staleness.bound=4 --keep"},
    {"validate", "configs/validation/h200.csv"},
    {"calibrate", "configs/validation/h200.csv"},
    {"ablation", "--markdown"},
};

/// The headings of `temper --help`, in order, and the commands below each.
constexpr std::pair<std::string_view, std::string_view> kGroups[] = {
    {"Set up", " init doctor check model "},
    {"Run", " run scale worker launch keys "},
    {"Inspect a run", " watch report runs diff samples serve "},
    {"Use the weights", " eval export "},
    {"Verify a run", " audit replay fsck events protocol "},
    {"Predict and compare", " cost plan tune sweep ladder faults measure forecast whatif "},
    {"Hardware model", " validate calibrate ablation "},
    {"Shell", " completion man "},
};

struct Meaning {
  std::string_view what, text;
};
constexpr Meaning kExitCodes[] = {
    {"0", "success"},
    {"1", "started, then failed"},
    {"2", "invalid command line or configuration; nothing was changed"},
    {"3", "a check found a problem"},
    {"4", "fsck: the run cannot be resumed"},
    {"130", "stopped on request"},
};
constexpr Meaning kVariables[] = {
    {"TEMPER_CONFIGS", "folder with the shipped configurations, hardware and models"},
    {"TEMPER_CACHE",
     "folder of base checkpoints and converted models (default: XDG_CACHE_HOME/temper, or "
     "~/.cache/temper)"},
    {"TEMPER_PYTHON",
     "Python interpreter of roles, rewards, chat templates and --compare (default: python3)"},
    {"TEMPER_SERVER_KEY", "API key of the inference servers"},
    {"TEMPER_REDIS_PASSWORD", "password of the Redis server of tensors (payloads.store: redis)"},
    {"TMPDIR", "folder for temporary files (default: /tmp)"},
    {"NO_COLOR", "if set, the output has no colors"},
};

template <std::size_t N>
std::string list_of(const Meaning (&meanings)[N]) {
  std::string out;
  for (const Meaning& m : meanings)
    out += fmt::format("{}  {:<26}  {}", out.empty() ? "" : "\n", m.what, m.text);
  return out;
}

std::string examples_of(std::string_view command) {
  std::string text;
  for (const auto& [name, words] : kExamples) {
    if (name == command)
      text += fmt::format("{}  temper {} {}", text.empty() ? "" : "\n", name, words);
  }
  return text;
}

/// Columns of the terminal. A pipe or a file gets 80, so that logs and pages can quote the help.
std::size_t terminal_width() {
  constexpr std::size_t kWithoutTerminal = 80;
  winsize size{};
  if (isatty(STDOUT_FILENO) == 0 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0)
    return kWithoutTerminal;
  return size.ws_col;
}

class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_description(const CLI::App* app) const override {
    return app->get_description() + "\n";
  }
  std::string make_help(const CLI::App* app,
                        std::string name,
                        CLI::AppFormatMode mode) const override {
    return wrapped_help(CLI::Formatter::make_help(app, std::move(name), mode), terminal_width());
  }
  /// Groups the commands by kGroups; CLI11 would list them in the order of declaration.
  std::string make_subcommands(const CLI::App* app, CLI::AppFormatMode) const override {
    std::string out;
    for (const auto& [group, listed] : kGroups) {
      const std::string_view names = listed;  // clang 14 captures no structured binding
      const auto commands = app->get_subcommands([&](const CLI::App* command) {
        return names.find(fmt::format(" {} ", command->get_name())) != std::string_view::npos;
      });
      if (!commands.empty())
        out += fmt::format("\n{}:\n", group);
      for (const CLI::App* command : commands)
        out += make_subcommand(command);
    }
    return out;
  }
};

/// Breaks a line into pieces of at most `width` columns and indents all but the first.
std::string broken(std::string_view line, std::size_t width) {
  constexpr std::size_t kDescription = 30;  // the column where CLI11 starts descriptions
  const bool described = line.size() > kDescription && line[0] == ' ' &&
                         line[kDescription - 1] == ' ' && width >= 2 * kDescription;
  const std::size_t indent = described ? kDescription : line.find_first_not_of(' ') + 4;
  std::string out, rest(line);
  while (rest.size() > width) {
    const std::size_t cut = rest.rfind(' ', width);
    if (cut == std::string::npos || cut <= rest.find_first_not_of(' '))
      break;
    out += rest.substr(0, cut) + '\n';
    rest = std::string(indent, ' ') + rest.substr(cut + 1);
  }
  return out + rest;
}

}  // namespace

std::string exit_codes_text() {
  return list_of(kExitCodes);
}

std::string variables_text() {
  return list_of(kVariables);
}

std::string wrapped_help(std::string_view text, std::size_t width) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    const bool whole = width == 0 || line.size() <= width || line.starts_with("  temper ");
    out += whole ? std::string(line) : broken(line, width);
    out += '\n';
    text.remove_prefix(std::min(text.size(), end + 1));
  }
  return out;
}

void set_help(CLI::App& app) {
  if (app.get_parent() == nullptr) {
    app.formatter(std::make_shared<HelpFormatter>());
    app.footer("Help for one command: temper COMMAND --help\n\nExit codes:\n" + exit_codes_text() +
               "\n\nEnvironment:\n" + variables_text());
    return;
  }
  if (const std::string examples = examples_of(app.get_name()); !examples.empty())
    app.footer("Examples:\n" + examples);
}

}  // namespace temper::cli
