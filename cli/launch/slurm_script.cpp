#include "cli/launch/slurm_script.hpp"

#include <fmt/format.h>

namespace temper::cli {
namespace {

/// The body of the script; the same for any number of nodes.
constexpr const char* kSteps = R"(
mkdir -p "$run/logs"
mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
echo "attempt ${SLURM_RESTART_COUNT:-0} of job $SLURM_JOB_ID on ${nodes[*]}"

# Before the time limit Slurm signals this script, which signals the steps: the orchestrator saves a
# checkpoint, stops its workers and exits with 0. Workers ignore the signal.
trap 'scancel --signal=USR1 "$SLURM_JOB_ID"' USR1

# step NAME NODE COMMAND...: one task on one node, with its own log.
step() {
  local name=$1 node=$2
  shift 2
  srun --nodes=1 --ntasks=1 --nodelist="$node" --job-name="$name" \
    --open-mode=append --output="$run/logs/$name.%N.log" "$@"
}

# The orchestrator starts the run, or resumes it from its last checkpoint. If it is killed, it is
# restarted; workers keep their loaded weights and attach to the new one.
orchestrator() {
  local code tries=0
  until step orchestrator "${nodes[0]}" \
    "$temper" run "$config" --continue --plain --set "run_dir=$run" "${settings[@]}"; do
    code=$?
    ((code > 128 && ++tries < 10)) || return "$code"
    sleep 1
  done
}

# A worker that dies is restarted while the orchestrator runs: its slot stays free for it, and its
# work goes to other workers. A worker that was told to stop (143) is not restarted.
worker() {
  local rank=$1 tries=0 code
  until step "worker-$rank" "${nodes[rank + 1]}" \
    "$temper" worker --connect "$run/endpoint" --key "$run/keys/worker.key" --rank "$rank"; do
    code=$?
    ((code != 143)) || return 0
    kill -0 "$head" 2>/dev/null && ((++tries < 10)) || return "$code"
    sleep 1
  done
}

orchestrator &
head=$!
workers=()
for ((rank = 0; rank + 1 < ${#nodes[@]}; rank++)); do
  worker "$rank" &
  workers+=($!)
done

# A signal interrupts `wait`, but not the process that it waits for.
finish() {
  local code
  while :; do
    wait "$1"
    code=$?
    kill -0 "$1" 2>/dev/null || return "$code"
  done
}

finish "$head"
worst=$?
# Workers end with the run; those that still wait for a slot or an orchestrator are told to stop.
for _ in {1..100}; do
  [[ -n $(jobs -r) ]] || break
  sleep 0.1
done
[[ -z $(jobs -r) ]] || scancel --signal=TERM "$SLURM_JOB_ID"
for pid in "${workers[@]}"; do
  finish "$pid"
  code=$?
  ((code <= worst)) || worst=$code
done
exit "$worst"
)";

std::string directive(const std::string& option, const std::string& why) {
  return why.empty() ? fmt::format("#SBATCH {}\n", option)
                     : fmt::format("#SBATCH {:<28} # {}\n", option, why);
}

}  // namespace

std::string shell_word(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:,+@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos)
    return word;
  std::string quoted = "'";
  for (const char c : word)
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string slurm_script(const LaunchPlan& p) {
  std::string out = fmt::format(
      "#!/bin/bash\n"
      "# Made by: {}\n"
      "# The first node runs the orchestrator and the roles that it starts itself; {}.\n",
      p.command,
      p.nodes == 2 ? "the second runs one worker"
                   : fmt::format("the other {} run one worker each", p.nodes - 1));
  out += directive("--job-name=" + p.name, "");
  out += directive(fmt::format("--nodes={}", p.nodes), "");
  out += directive("--ntasks-per-node=1", "");
  out += directive("--exclusive", "");
  if (!p.partition.empty())
    out += directive("--partition=" + p.partition, "");
  if (p.gpus > 0)
    out += directive(fmt::format("--gpus-per-node={}", p.gpus), "");
  if (!p.time.empty())
    out += directive("--time=" + p.time, "");
  out += directive("--requeue", "after a lost node or a preemption the run resumes");
  out += directive(fmt::format("--signal=B:USR1@{}", p.warning), "seconds before the time limit");
  out += directive("--open-mode=append", "");
  out += directive("--output=" + shell_word(p.name + ".%j.log"), "");
  out += fmt::format(
      "\nrun={} # on a file system that all nodes share\n"
      "config={}\n"
      "temper={}\n"
      "settings=(",
      shell_word(p.run_dir),
      shell_word(p.config),
      shell_word(p.program));
  for (const std::string& set : p.sets)
    out += fmt::format("\n  --set {}", shell_word(set));
  out += p.sets.empty() ? ")\n" : "\n)\n";
  return out + kSteps;
}

}  // namespace temper::cli
