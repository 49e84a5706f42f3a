// What Slurm is given to run a pipeline on several nodes: a script as a person would write it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace temper::cli {

/// A text file that a manifest carries.
struct PackedFile {
  std::string name;
  std::string text;  ///< Characters of YAML alone, each line ended.
};
/// Where pods see these files.
inline constexpr std::string_view kPackedFolder = "/etc/temper";

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
  /// In a ConfigMap, mounted at kPackedFolder: the configuration, and data that is small.
  std::vector<PackedFile> packed{};
  /// What the configuration names besides, and pods must find themselves: "model.path: models/a".
  std::vector<std::string> not_packed{};
};

std::string slurm_script(const LaunchPlan& plan);

/// A ConfigMap (v1) with plan.packed, of which it says what is not in it.
std::string config_map_manifest(const LaunchPlan& plan);
/// A JobSet (jobset.x-k8s.io/v1alpha2) that mounts the ConfigMap. Pods work in `mount`, from where
/// relative paths of the configuration are seen.
std::string jobset_manifest(const LaunchPlan& plan);

/// A word as sh reads it back: quoted where it has to be.
std::string shell_word(const std::string& word);

}  // namespace temper::cli
