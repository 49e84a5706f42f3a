// The Slurm script and the Kubernetes manifests that run a pipeline on several machines.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace temper::cli {

/// A text file that a manifest carries.
struct PackedFile {
  std::string name;
  std::string text;  ///< Printable; every line ends with a line break.
};
/// Where pods mount these files.
inline constexpr std::string_view kPackedFolder = "/etc/temper";

/// A run on several machines. One machine has the orchestrator and the roles that it starts itself;
/// each of the others has one worker.
struct LaunchPlan {
  std::string command{};  ///< The user's command line, for the first line.
  std::string name{};     ///< Name of the job.
  std::string config{};
  std::string run_dir{};  ///< On a file system that all machines share.
  std::vector<std::string> sets{};
  int nodes = 2;
  // Slurm.
  std::string program = "temper";
  std::string time{};       ///< In sbatch's format; empty: the partition's.
  std::string partition{};  ///< Empty: the default one.
  int gpus = 0;             ///< Per node.
  int warning = 300;        ///< Seconds before the time limit at which Slurm signals the run.
  // Kubernetes.
  std::string image{};
  std::string claim{};  ///< The volume claim that pods mount at `mount`.
  std::string mount = "/shared";
  /// The configuration and small data files, in a ConfigMap that is mounted at kPackedFolder.
  std::vector<PackedFile> packed{};
  /// Files of the configuration that pods must find themselves: "model.path: models/a".
  std::vector<std::string> not_packed{};
};

std::string slurm_script(const LaunchPlan& plan);

/// A ConfigMap (v1) with plan.packed; a comment lists plan.not_packed.
std::string config_map_manifest(const LaunchPlan& plan);
/// A JobSet (jobset.x-k8s.io/v1alpha2) that mounts the ConfigMap. The working directory of its pods
/// is `mount`, where relative paths of the configuration start.
std::string jobset_manifest(const LaunchPlan& plan);

/// Quotes a word for sh if it needs quotes.
std::string shell_word(const std::string& word);

}  // namespace temper::cli
