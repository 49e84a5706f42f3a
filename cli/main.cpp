// temper: the commands that a run needs, and those that the laboratory adds.
#include "cli/command/command_line.hpp"
#include "cli/laboratory/laboratory.hpp"
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
     "Run a pipeline; Ctrl-C finishes the current step, a second Ctrl-C stops at once",
     temper::cli::run_command},
    {"worker",
     "Start a worker on this machine and attach it to a run",
     temper::cli::worker_command},
    {"launch",
     "Write the Slurm script or Kubernetes manifest of a multi-machine run",
     temper::cli::launch_command},
    {"keys", "Make, list or revoke the keys that workers attach with", temper::cli::keys_command},
    {"scale",
     "Change the number of rollout engines or verifiers of a running job",
     temper::cli::scale_command},
    {"check",
     "Validate a configuration; print the resolved values and the card map",
     temper::cli::check_command},
    {"init", "Write a commented configuration for your own task", temper::cli::init_command},
    {"doctor", "Check this machine for everything that a run needs", temper::cli::doctor_command},
    {"report", "Summarize a run: reward, throughput, waits, cards", temper::cli::report_command},
    {"watch", "Follow a running job from another terminal", temper::cli::watch_command},
    {"runs", "List, sort, filter or delete the runs of a folder", temper::cli::runs_command},
    {"diff", "Compare the configurations and figures of two runs", temper::cli::diff_command},
    {"samples", "Read prompts, responses and rewards of a run", temper::cli::samples_command},
    {"serve",
     "Serve the web page of runs, and their metrics for Prometheus",
     temper::cli::serve_command},
    {"audit",
     "Verify staleness bound, group counts and times of a run with independent code",
     temper::cli::audit_command},
    {"fsck",
     "Verify a run folder; --repair quarantines damage and rebuilds derived files",
     temper::cli::fsck_command},
    {"replay",
     "Replay the recorded events through the scheduler; every command must match",
     temper::cli::replay_command},
    {"events", "Print events.log as JSON, one object per line", temper::cli::events_command},
    {"eval", "Evaluate a checkpoint or a model on held-out problems", temper::cli::eval_command},
    {"export",
     "Write a checkpoint of a run as a Hugging Face model folder",
     temper::cli::export_command},
    {"model",
     "Describe a model folder and check that Temper can run it",
     temper::cli::model_command},
    {"protocol",
     "Print the messages between orchestrator and workers, for other languages",
     temper::cli::protocol_command},
};

}  // namespace

int main(int argc, char** argv) {
  std::vector<Command> commands(std::begin(kRunCommands), std::end(kRunCommands));
  std::ranges::copy(temper::cli::laboratory_commands(), std::back_inserter(commands));
  return temper::cli::run_command_line(argc, argv, commands);
}
