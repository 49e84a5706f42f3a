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

/// What `temper COMMAND --help` ends with.
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
    {"worker", "--connect /shared/run/endpoint --key /shared/run/keys/worker.key --role rollout"},
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
    {"cost", "kind=decode_step model=qwen2.5-7b hardware=nvidia-h200 batch=128 context=2048"},
    {"plan", "task=train model=qwen3-8b hardware=nvidia-h100 batch=64 seq=4096"},
    {"tune", "configs/cm384_pangu.yaml --max-staleness 2 --out runs/tuned"},
    {"sweep", "configs/cm384_pangu.yaml --over staleness.bound=0,1,2,4"},
    {"ladder", "configs/cm384_pangu.yaml"},
    {"compare", "configs/quickstart.yaml"},
    {"faults", "configs/cm384_pangu.yaml"},
    {"measure", "configs/quickstart.yaml"},
    {"forecast", "configs/quickstart.yaml --over staleness.bound=0,1,2,4"},
    {"whatif", "runs/first --set staleness.bound=4"},
    {"whatif", "runs/first --set staleness.bound=4 --keep"},
    {"validate", "configs/validation/h200.csv"},
    {"calibrate", "configs/validation/h200.csv"},
    {"ablation", "--markdown"},
};

/// Under which heading of `temper --help` a command stands; in the order of the headings.
constexpr std::pair<std::string_view, std::string_view> kGroups[] = {
    {"Before a run", " init doctor check model "},
    {"Run", " run scale worker launch keys "},
    {"Look at a run", " watch report runs diff samples serve "},
    {"Weights of a run", " eval export "},
    {"Prove a run", " audit replay fsck events protocol "},
    {"Ask before a run, or about another one",
     " cost plan tune sweep ladder compare faults measure forecast whatif "},
    {"The hardware model", " validate calibrate ablation "},
    {"Shell", " completion man "},
};

struct Meaning {
  std::string_view what, text;
};
constexpr Meaning kExitCodes[] = {
    {"0", "done"},
    {"1", "begun, and failed"},
    {"2", "the words or the configuration cannot be; nothing was done"},
    {"3", "a check found something"},
    {"4", "fsck: the run cannot go on as it is"},
    {"130", "stopped on request"},
};
constexpr Meaning kVariables[] = {
    {"TEMPER_CONFIGS", "folder of the shipped configurations, hardware and models"},
    {"TEMPER_CACHE", "folder of base checkpoints; else XDG_CACHE_HOME/temper or ~/.cache/temper"},
    {"TEMPER_PYTHON", "the Python of roles and rewards; else python3"},
    {"TEMPER_SERVER_KEY", "key that inference servers ask for"},
    {"TMPDIR", "temporary files; else /tmp"},
    {"NO_COLOR", "set: no colours"},
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

std::size_t terminal_width() {
  winsize size{};
  if (isatty(STDOUT_FILENO) == 0 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0)
    return 0;
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
  /// By kGroups: the library has them in the order of the commands.
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

/// A line in pieces of `width` columns; those behind the first are indented.
std::string broken(std::string_view line, std::size_t width) {
  constexpr std::size_t kDescription = 30;  // the library's column of descriptions
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
    app.footer("Of one command: temper COMMAND --help\n\nExit codes:\n" + exit_codes_text() +
               "\n\nEnvironment:\n" + variables_text());
    return;
  }
  if (const std::string examples = examples_of(app.get_name()); !examples.empty())
    app.footer("Examples:\n" + examples);
}

}  // namespace temper::cli
