// `temper launch`: its output equals the examples in docs/launch, and the shell accepts the
// scripts.
#include "cli/launch/slurm_script.hpp"
#include "core/files.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

namespace temper::cli {
namespace {

namespace fs = std::filesystem;

struct Printed {
  std::string text;
  int status = 0;
};

/// Of a shell command in the folder of the sources.
Printed printed(const std::string& command) {
  Printed out;
  const std::string line = "cd " + shell_word(TEMPER_SOURCE_DIR) + " && " + command + " 2>&1";
  std::FILE* const pipe = ::popen(line.c_str(), "r");
  std::array<char, 4096> bytes;
  for (std::size_t n = 0; (n = std::fread(bytes.data(), 1, bytes.size(), pipe)) > 0;)
    out.text.append(bytes.data(), n);
  out.status = ::pclose(pipe);
  return out;
}

std::string launch(const std::string& words) {
  const Printed got = printed(std::string(TEMPER_PROGRAM) + " launch " + words);
  EXPECT_EQ(got.status, 0) << got.text;
  return got.text;
}

void expect_page(const std::string& name, const std::string& words) {
  const fs::path page = fs::path(TEMPER_SOURCE_DIR) / "docs" / "launch" / name;
  const std::string now = launch(words);
  if (std::getenv("TEMPER_UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(write_file_atomically(page, now));
    fs::permissions(page, fs::perms(0644));
  }
  EXPECT_EQ(read_file(page).value_or(""), now)
      << page << " is stale; TEMPER_UPDATE_GOLDEN=1 writes it";
}

TEST(LaunchPages, AreWhatTheProgramWrites) {
  const std::string quickstart = "configs/quickstart.yaml --run-dir /shared/quickstart ";
  expect_page("slurm-2.sbatch", "slurm " + quickstart + "--nodes 2 --time 2:00:00");
  expect_page(
      "slurm-64.sbatch",
      "slurm " + quickstart + "--nodes 64 --gpus-per-node 8 --partition gpu --time 1-00:00:00");
  expect_page(
      "jobset.yaml",
      "k8s configs/quickstart.yaml --nodes 4 --image registry.example/temper:1 --claim shared");
}

TEST(JobSet, CarriesTheConfigurationAndSmallDataAndNamesTheRest) {
  const test::TemporaryFolder folder;
  const std::string row = "{\"prompt\": \"1+1=\", \"answer\": \"2\"}\n";
  const auto manifest = [&](const std::string& data) {
    EXPECT_TRUE(write_file_atomically(folder / "train.jsonl", data));
    EXPECT_TRUE(write_file_atomically(folder / "judge.py", ""));
    EXPECT_TRUE(write_file_atomically(
        folder / "my.yaml",
        "name: my\nsteps: 17\ntask: {kind: jsonl, path: " + (folder / "train.jsonl").string() +
            "}\nverifier: {kind: command, command: [python3, " + (folder / "judge.py").string() +
            "]}\n"));
    return launch("k8s " + (folder / "my.yaml").string() +
                  " --nodes 2 --image registry.example/temper:1 --claim shared");
  };
  const std::string small = manifest(row);
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_TRUE(has(small, "kind: ConfigMap")) << small;
  EXPECT_TRUE(has(small, "    steps: 17\n"));
  EXPECT_TRUE(has(small, "  task.jsonl: |2\n    " + row));
  EXPECT_TRUE(has(small, "path: /etc/temper/task.jsonl"));
  EXPECT_TRUE(has(small, "\"/etc/temper/run.yaml\""));
  EXPECT_TRUE(has(small, "workingDir: \"/shared\""));
  EXPECT_TRUE(has(small, "verifier.command: " + (folder / "judge.py").string()));
  EXPECT_FALSE(has(small, "#   task.path"));
  std::string large;
  while (large.size() < (std::size_t{512} << 10))
    large += row;
  const std::string left = manifest(large);
  EXPECT_FALSE(has(left, "task.jsonl: |2"));
  EXPECT_TRUE(has(left, "#   task.path: " + (folder / "train.jsonl").string()));
}

TEST(Worker, SaysWhichRunItWaitsFor) {
  const test::TemporaryFolder folder;
  const std::string endpoint = (folder / "run/endpoint").string();
  const Printed waited =
      printed(std::string(TEMPER_PROGRAM) + " worker --connect " + shell_word(endpoint) +
              " --key none.key --role rollout --patience 0");
  EXPECT_NE(waited.status, 0);
  const std::size_t line = waited.text.find("waiting");
  ASSERT_NE(line, std::string::npos) << waited.text;
  EXPECT_NE(waited.text.find(endpoint, line), std::string::npos) << waited.text;
}

TEST(SlurmScript, IsOneThatTheShellTakes) {
  for (const char* page : {"slurm-2.sbatch", "slurm-64.sbatch"}) {
    const Printed checked = printed(std::string("bash -n docs/launch/") + page);
    EXPECT_EQ(checked.status, 0) << checked.text;
  }
}

TEST(SlurmScript, IsTheSameForAnyNumberOfNodesButForItsHeader) {
  LaunchPlan two{.command = "temper launch", .name = "a", .config = "a.yaml", .run_dir = "/r"};
  LaunchPlan many = two;
  many.nodes = 1000;
  const auto steps = [](const LaunchPlan& plan) {
    const std::string script = slurm_script(plan);
    return script.substr(script.find("\nrun="));
  };
  EXPECT_EQ(steps(two), steps(many));
}

TEST(SlurmScript, WordsOfTheUserStayOneWord) {
  EXPECT_EQ(shell_word("rollout.replicas=3"), "rollout.replicas=3");
  EXPECT_EQ(shell_word("it's; rm -rf *"), "'it'\\''s; rm -rf *'");
  EXPECT_EQ(shell_word(""), "''");
  for (const std::string& word :
       {std::string("a b"), std::string("it's $HOME `x`"), std::string("\"")})
    EXPECT_EQ(printed("printf %s " + shell_word(word)).text, word);
}

TEST(Launch, RefusesANameThatKubernetesDoesNotTake) {
  const Printed got = printed(std::string(TEMPER_PROGRAM) +
                              " launch k8s configs/quickstart.yaml --nodes 2 --image i --claim c "
                              "--set name=My_Run");
  EXPECT_NE(got.status, 0);
  EXPECT_NE(got.text.find("\"My_Run\" is not a valid JobSet name"), std::string::npos) << got.text;
}

TEST(Launch, RefusesFewerNodesThanWorkersThatAttach) {
  const Printed got = printed(std::string(TEMPER_PROGRAM) +
                              " launch slurm configs/quickstart.yaml --nodes 2 --set "
                              "rollout.launch=attach --set rollout.replicas=3 --set "
                              "transport.kind=tcp");
  EXPECT_NE(got.status, 0);
  EXPECT_NE(got.text.find("3 actors need a worker, but 2 nodes have only 1 workers: use "
                          "--nodes 4"),
            std::string::npos)
      << got.text;
}

}  // namespace
}  // namespace temper::cli
