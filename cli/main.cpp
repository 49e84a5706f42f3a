// temper: what a run needs. What asks before and after one is in temper-study (study/main.cpp).
#include "cli/command/command_line.hpp"
#include "cli/launch/keys_command.hpp"
#include "cli/launch/launch_command.hpp"
#include "cli/launch/worker_command.hpp"
#include "cli/run/after_run.hpp"
#include "cli/run/check_command.hpp"
#include "cli/run/eval_command.hpp"
#include "cli/run/fsck_command.hpp"
#include "cli/run/model_command.hpp"
#include "cli/run/protocol_command.hpp"
#include "cli/run/report_command.hpp"
#include "cli/run/run_command.hpp"
#include "cli/run/runs_command.hpp"
#include "cli/run/samples_command.hpp"
#include "cli/run/scale_command.hpp"
#include "cli/run/serve_command.hpp"
#include "cli/run/setup_commands.hpp"
#include "cli/run/watch_command.hpp"

#include <algorithm>
#include <iterator>
#include <vector>

namespace {

using temper::cli::Command;

constexpr Command kRunCommands[] = {
    {"run",
     "Launch a pipeline; Ctrl-C finishes the update under way, a second one stops",
     temper::cli::run_command},
    {"worker",
     "A worker of a run that goes on elsewhere: started by anyone, on any machine",
     temper::cli::worker_command},
    {"launch",
     "Write what Slurm or Kubernetes needs to run a pipeline on many machines",
     temper::cli::launch_command},
    {"keys", "What workers attach to a run with: make, list, revoke", temper::cli::keys_command},
    {"scale",
     "Another number of engines or verifiers for a run, while it goes on",
     temper::cli::scale_command},
    {"check",
     "Validate a configuration; print it resolved, and the card map",
     temper::cli::check_command},
    {"init", "Write a commented configuration for a task of your own", temper::cli::init_command},
    {"doctor",
     "What this machine has of what a run needs, and what to do about the rest",
     temper::cli::doctor_command},
    {"report", "Summary and tables of a run", temper::cli::report_command},
    {"watch", "The view of a run, from another terminal", temper::cli::watch_command},
    {"runs", "List the runs of a folder; sort, filter, remove", temper::cli::runs_command},
    {"diff",
     "Two runs: what their configurations and figures say differently",
     temper::cli::diff_command},
    {"samples", "Read prompts, responses and rewards of a run", temper::cli::samples_command},
    {"serve",
     "The page of runs, in a browser; figures for Prometheus on the same port",
     temper::cli::serve_command},
    {"audit",
     "Re-check bound, conservation and times of a run, with code of its own",
     temper::cli::audit_command},
    {"fsck",
     "Is every file of a run what was written? --repair keeps what it takes out",
     temper::cli::fsck_command},
    {"replay",
     "Feed the recorded events to a fresh scheduler; every command must come out",
     temper::cli::replay_command},
    {"events", "Print events.log, one JSON object per line", temper::cli::events_command},
    {"eval",
     "Hold a checkpoint of a run, or a model folder, against problems it was not trained on",
     temper::cli::eval_command},
    {"export",
     "A checkpoint of a run as a model folder that others load",
     temper::cli::export_command},
    {"model",
     "What a model folder is, and whether it can be run; --planner describes it to the planner",
     temper::cli::model_command},
    {"protocol",
     "Every message between a run and its workers, for a role in another language",
     temper::cli::protocol_command},
};

}  // namespace

int main(int argc, char** argv) {
  std::vector<Command> commands(std::begin(kRunCommands), std::end(kRunCommands));
  std::ranges::copy(temper::cli::study_commands(), std::back_inserter(commands));
  return temper::cli::run_command_line(argc, argv, commands);
}
