#include "cli/launch/slurm_script.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace temper::cli {
namespace {

/// A YAML string in double quotes.
std::string yaml_word(const std::string& word) {
  std::string quoted = "\"";
  for (const char c : word) {
    if (c == '"' || c == '\\')
      quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

/// One replicated job of the JobSet; each pod has one container.
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
      "                  image: {}\n"
      "                  workingDir: {}\n",
      name,
      pods,
      pods,
      10 * pods,
      p.warning,
      yaml_word(p.image),
      yaml_word(p.mount));
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
      "                    - name: config\n"
      "                      mountPath: {}\n"
      "              volumes:\n"
      "                - name: shared\n"
      "                  persistentVolumeClaim:\n"
      "                    claimName: {}\n"
      "                - name: config\n"
      "                  configMap:\n"
      "                    name: {}-config\n",
      yaml_word(p.mount),
      yaml_word(std::string(kPackedFolder)),
      p.claim,
      p.name);
  return out;
}

}  // namespace

std::string config_map_manifest(const LaunchPlan& p) {
  std::string out =
      fmt::format("# Made by: {}\n# Mounted at {} in each pod.", p.command, kPackedFolder);
  if (!p.not_packed.empty()) {
    out += fmt::format(
        " Not included: pods must find these in their image or\n"
        "# on the volume of claim `{}` (relative paths start at {}):\n",
        p.claim,
        p.mount);
    for (const std::string& each : p.not_packed)
      out += fmt::format("#   {}\n", each);
  } else {
    out += '\n';
  }
  out += fmt::format(
      "apiVersion: v1\n"
      "kind: ConfigMap\n"
      "metadata:\n"
      "  name: {}-config\n"
      "data:\n",
      p.name);
  for (const PackedFile& file : p.packed) {
    out += fmt::format("  {}: |2\n", file.name);
    for (std::size_t begin = 0; begin < file.text.size();) {
      const std::size_t end = std::min(file.text.find('\n', begin), file.text.size());
      const std::string line = file.text.substr(begin, end - begin);
      out += line.empty() ? "\n" : fmt::format("    {}\n", line);
      begin = end + 1;
    }
  }
  return out;
}

std::string jobset_manifest(const LaunchPlan& p) {
  std::vector<std::string> head{
      p.program, "run", p.config, "--continue", "--plain", "--set", "run_dir=" + p.run_dir};
  for (const std::string& set : p.sets)
    head.insert(head.end(), {"--set", set});
  // The host name that JobSet gives a pod: set, job, job index, pod index, subdomain.
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
             "# One pod runs the orchestrator and the roles that it starts itself; {} more run "
             "one\n"
             "# worker each. Kubernetes restarts a container that fails: the orchestrator resumes "
             "from\n"
             "# its last checkpoint, and workers attach again. The set succeeds when the run "
             "finishes.\n"
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
