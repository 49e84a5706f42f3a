#include "cli/launch/slurm_script.hpp"

#include <fmt/format.h>

namespace temper::cli {
namespace {

/// In double quotes, as YAML reads it.
std::string yaml_word(const std::string& word) {
  std::string quoted = "\"";
  for (const char c : word) {
    if (c == '"' || c == '\\')
      quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

/// One replicated job of the set, with a container in each of its pods.
std::string replicated_job(const LaunchPlan& p,
                           const std::string& name,
                           int pods,
                           const std::vector<std::string>& arguments) {
  std::string out = fmt::format(
      "    - name: {}\n"
      "      template:\n"
      "        spec:\n"
      "          completionMode: Indexed\n"
      "          parallelism: {}\n"
      "          completions: {}\n"
      "          backoffLimit: {}\n"
      "          template:\n"
      "            spec:\n"
      "              restartPolicy: OnFailure\n"
      "              terminationGracePeriodSeconds: {}\n"
      "              containers:\n"
      "                - name: temper\n"
      "                  image: {}\n",
      name,
      pods,
      pods,
      10 * pods,
      p.warning,
      yaml_word(p.image));
  out += "                  command:\n";
  for (const std::string& argument : arguments)
    out += fmt::format("                    - {}\n", yaml_word(argument));
  if (p.gpus > 0 && name != "orchestrator") {
    out += fmt::format(
        "                  resources:\n"
        "                    limits:\n"
        "                      nvidia.com/gpu: {}\n",
        p.gpus);
  }
  out += fmt::format(
      "                  volumeMounts:\n"
      "                    - name: shared\n"
      "                      mountPath: {}\n"
      "              volumes:\n"
      "                - name: shared\n"
      "                  persistentVolumeClaim:\n"
      "                    claimName: {}\n",
      yaml_word(p.mount),
      p.claim);
  return out;
}

}  // namespace

std::string jobset_manifest(const LaunchPlan& p) {
  std::vector<std::string> head{
      p.program, "run", p.config, "--continue", "--plain", "--set", "run_dir=" + p.run_dir};
  for (const std::string& set : p.sets)
    head.insert(head.end(), {"--set", set});
  // JobSet gives each pod this name: set, job, index of the job, index of the pod, subdomain.
  head.insert(head.end(),
              {"--set", fmt::format("transport.advertise={}-orchestrator-0-0.{}", p.name, p.name)});
  const std::vector<std::string> worker{p.program,
                                        "worker",
                                        "--connect",
                                        p.run_dir + "/endpoint",
                                        "--key",
                                        p.run_dir + "/keys/worker.key"};
  return fmt::format(
             "# Made by: {}\n"
             "# A pod has the orchestrator and the roles that it starts itself; {} more have a "
             "worker\n"
             "# each. A container that ends badly is started again: the orchestrator goes on from "
             "its\n"
             "# last checkpoint, workers join again. Succeeds when the run has finished.\n"
             "apiVersion: jobset.x-k8s.io/v1alpha2\n"
             "kind: JobSet\n"
             "metadata:\n"
             "  name: {}\n"
             "spec:\n"
             "  network:\n"
             "    enableDNSHostnames: true\n"
             "  failurePolicy:\n"
             "    maxRestarts: 3\n"
             "  successPolicy:\n"
             "    operator: All\n"
             "    targetReplicatedJobs:\n"
             "      - orchestrator\n"
             "  replicatedJobs:\n",
             p.command,
             p.nodes - 1,
             p.name) +
         replicated_job(p, "orchestrator", 1, head) +
         replicated_job(p, "workers", p.nodes - 1, worker);
}

}  // namespace temper::cli
