// What Slurm is given to run a pipeline on several nodes: a script as a person would write it.
#pragma once

#include <string>
#include <vector>

namespace temper::cli {

/// A run on several machines: one has the orchestrator and the roles that it starts itself, each of
/// the others one worker.
struct LaunchPlan {
  std::string command{};  ///< What was typed, for the first line.
  std::string name{};     ///< Of the job.
  std::string config{};
  std::string run_dir{};  ///< On a file system that all machines see.
  std::vector<std::string> sets{};
  int nodes = 2;
  // Slurm.
  std::string program = "temper";
  std::string time{};       ///< As sbatch takes it; empty: the partition's.
  std::string partition{};  ///< Empty: the default one.
  int gpus = 0;             ///< Per node.
  int warning = 300;        ///< Seconds before the end of its time at which the run is told.
  // Kubernetes.
  std::string image{};
  std::string claim{};  ///< The volume claim that all pods mount at `mount`.
  std::string mount = "/shared";
};

std::string slurm_script(const LaunchPlan& plan);

/// A JobSet (jobset.x-k8s.io/v1alpha2).
std::string jobset_manifest(const LaunchPlan& plan);

/// A word as sh reads it back: quoted where it has to be.
std::string shell_word(const std::string& word);

}  // namespace temper::cli
