// `~` and `${HOME}` in every key that names a file or folder.
#include "orchestrator/pipeline/config_paths.hpp"

#include "core/files.hpp"
#include "core/home_path.hpp"
#include "orchestrator/pipeline/load.hpp"
#include "tests/support/temporary_folder.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;

/// The keys whose values are text or lists of text.
class TextKeys {
 public:
  template <class T>
  void field(int, std::string_view name, T& value, const std::type_identity_t<FieldMeta<T>>& = {}) {
    const std::string outer = key_;
    key_ += (key_.empty() ? "" : ".") + std::string(name);
    visit(value);
    key_ = outer;
  }
  const std::set<std::string>& found() const { return found_; }

 private:
  template <class T>
  void visit(T& value) {
    if constexpr (OptionalLike<T> || VectorLike<T>) {
      typename T::value_type inner{};
      visit(inner);
    } else if constexpr (MapLike<T>) {
      typename T::mapped_type inner{};
      if constexpr (Described<typename T::mapped_type>)
        visit(inner);
    } else if constexpr (Described<T>) {
      describe(*this, value);
    } else if constexpr (std::same_as<T, std::string>) {
      found_.insert(key_);
    }
  }
  std::string key_;
  std::set<std::string> found_;
};

TEST(ConfigPaths, ClassifyEveryTextKey) {
  // Names, host addresses, code, patterns and shell commands, by their last part.
  const std::set<std::string> no_paths{
      "name",         "pattern", "function",     "environment", "use",     "start",
      "served_model", "reload",  "bind",         "advertise",   "redis",   "ignore",
      "targets",      "url",     "key_variable", "prompt",      "system",  "field",
      "label",        "text",    "device",       "extra_body",  "teacher", "teacher_column"};
  PipelineConfig config;
  TextKeys keys;
  describe(keys, config);
  EXPECT_GE(keys.found().size(), 20U);
  for (const std::string& key : keys.found()) {
    const std::string last = key.substr(key.rfind('.') + 1);
    const bool plain = no_paths.contains(last) || key.ends_with("judge.model");
    EXPECT_EQ(text_kind(key) == TextKind::Plain, plain)
        << key << ": is it a path? see config_paths.cpp";
  }
}

/// Sets HOME during a test.
class Home {
 public:
  explicit Home(const char* home) : before_(home_folder()) { ::setenv("HOME", home, 1); }
  ~Home() { ::setenv("HOME", before_.c_str(), 1); }
  Home(const Home&) = delete;
  Home& operator=(const Home&) = delete;

 private:
  const std::string before_;
};

TEST(ConfigPaths, ExpandTheHomeDirectoryInFilesAndSets) {
  const Home home("/home/me");
  const std::vector<std::string> set{"run_dir=~/runs/x"};
  for (const LoadedConfig& loaded : {LoadedConfig("x.yaml", "run_dir: ~/runs/x\n", {}),
                                     LoadedConfig("x.yaml", "run_dir: ${HOME}/runs/x\n", {}),
                                     LoadedConfig("x.yaml", "run_dir: \"$HOME/runs/x\"\n", {}),
                                     LoadedConfig("x.yaml", "steps: 2\n", set)}) {
    EXPECT_EQ(render(loaded.issues()), "");
    EXPECT_EQ(loaded.config().run_dir, "/home/me/runs/x");
  }
}

TEST(ConfigPaths, ExpandEveryKind) {
  PipelineConfig config;
  config.task.path = "~/a";
  config.model.path = "${HOME}/b";
  config.evaluation.path = "~/c";
  config.verifier.command = {"python3", "~/judge.py", "${HOME}", "a~/b"};
  config.verifier.hidden = {"~/.ssh"};
  config.rollout.engine.python = "~/venv/bin/python";
  config.rollout.engine.folder = "$HOME/weights";
  config.rollout.engine.data = {"file:~/servers", "http://a~/b"};
  config.trainer.engine.command = {"~/bin/trainer"};
  config.alarms.on_alarm = {"~/bin/notify"};
  config.payloads.redis_ca = "~/ca.pem";
  config.simulation.model = "~/m.yaml";
  config.simulation.clusters = {{}, {}};
  config.simulation.clusters[1].hardware = "~/h.yaml";
  config.simulation.response.trace = "~/t.json";
  config.simulation.faults.trace = "~/f.csv";
  config.simulation.tools.emplace().latency.trace = "~/l.json";
  config.simulation.trainer.experts.emplace().trace = "~/e.csv";
  EXPECT_TRUE(expand_paths(config, "/h").empty());
  EXPECT_EQ(config.task.path, "/h/a");
  EXPECT_EQ(config.model.path, "/h/b");
  EXPECT_EQ(config.evaluation.path, "/h/c");
  EXPECT_EQ(config.verifier.command,
            (std::vector<std::string>{"python3", "/h/judge.py", "${HOME}", "a~/b"}))
      << "a shell in the command expands it";
  EXPECT_EQ(config.verifier.hidden, std::vector<std::string>{"/h/.ssh"});
  EXPECT_EQ(config.rollout.engine.python, "/h/venv/bin/python");
  EXPECT_EQ(config.rollout.engine.folder, "/h/weights");
  EXPECT_EQ(config.rollout.engine.data,
            (std::vector<std::string>{"file:/h/servers", "http://a~/b"}));
  EXPECT_EQ(config.trainer.engine.command, std::vector<std::string>{"/h/bin/trainer"});
  EXPECT_EQ(config.alarms.on_alarm, std::vector<std::string>{"/h/bin/notify"});
  EXPECT_EQ(config.payloads.redis_ca, "/h/ca.pem");
  EXPECT_EQ(config.simulation.model, "/h/m.yaml");
  EXPECT_EQ(config.simulation.clusters[1].hardware, "/h/h.yaml");
  EXPECT_EQ(config.simulation.response.trace, "/h/t.json");
  EXPECT_EQ(config.simulation.faults.trace, "/h/f.csv");
  EXPECT_EQ(config.simulation.tools->latency.trace, "/h/l.json");
  EXPECT_EQ(config.simulation.trainer.experts->trace, "/h/e.csv");
}

TEST(ConfigPaths, ReportOtherVariablesAtTheirKeyAndLine) {
  const Home home("/home/me");
  for (const char* path : {"${oc.env:HOME}/x", "${USER}", "$SCRATCH/x", "~other/x"}) {
    const LoadedConfig loaded("x.yaml", fmt::format("steps: 2\nrun_dir: \"{}\"\n", path), {});
    ASSERT_EQ(loaded.issues().size(), 1U) << path;
    EXPECT_EQ(loaded.issues().front().location, "x.yaml:2");
    EXPECT_EQ(loaded.issues().front().key, "run_dir");
  }
  const std::vector<std::string> sets{"verifier.hidden=[/a, \"${X}/b\"]"};
  const LoadedConfig listed("x.yaml", "steps: 2\n", sets);
  ASSERT_EQ(listed.issues().size(), 1U);
  EXPECT_EQ(listed.issues().front().key, "verifier.hidden[1]");
}

TEST(ConfigPaths, MayExtendAFileInTheHomeDirectory) {
  const test::TemporaryFolder folder;
  const Home home(folder.path().c_str());
  ASSERT_TRUE(write_file_atomically(folder / "base.yaml", "steps: 7\n"));
  for (const char* named : {"~/base.yaml", "${HOME}/base.yaml"}) {
    ASSERT_TRUE(write_file_atomically(folder / "over.yaml", fmt::format("extends: {}\n", named)));
    const auto loaded = load_config(folder / "over.yaml");
    ASSERT_TRUE(loaded) << loaded.error().context;
    EXPECT_EQ(loaded->steps, 7U);
  }
  ASSERT_TRUE(write_file_atomically(folder / "over.yaml", "extends: ${X}/base.yaml\n"));
  EXPECT_FALSE(load_config(folder / "over.yaml"));
}

/// Restores the working folder.
class WorkingFolder {
 public:
  explicit WorkingFolder(const fs::path& folder) { fs::current_path(folder); }
  ~WorkingFolder() { fs::current_path(before_); }

 private:
  const fs::path before_ = fs::current_path();
};

TEST(ConfigPaths, OfASimulationNameTheirFilesInEveryFolder) {
  const test::TemporaryFolder folder;
  ASSERT_TRUE(make_folder(folder / "lists"));
  ASSERT_TRUE(write_file_atomically(folder / "lists/latencies.json", "[120, 4500]"));
  fs::copy_file(fs::path(TEMPER_SOURCE_DIR) / "docs/cluster/my-h100.yaml", folder / "my-h100.yaml");
  const std::string text =
      "hardware: simulated\npolicy: synthetic\nplacement: {cards: 8}\n"
      "rollout: {replicas: 4}\nreference: {replicas: 0}\n"
      "simulation:\n  cluster: my-h100.yaml\n  model: qwen2.5-0.5b\n"
      "  tools: {latency: {trace: lists/latencies.json}}\n";
  const auto expect_found = [&](const LoadedConfig& loaded) {
    ASSERT_EQ(render(loaded.issues()), "");
    const actors::SimulationConfig& c = loaded.config().simulation;
    EXPECT_EQ(c.tools->latency.trace, (folder / "lists/latencies.json").string());
    EXPECT_EQ(c.cluster, (folder / "my-h100.yaml").string());
    EXPECT_EQ(c.model, "qwen2.5-0.5b");
  };
  expect_found(LoadedConfig((folder / "beside.yaml").string(), text, {}));
  std::string of_run;  // The configuration of a run that was started there.
  {
    const WorkingFolder in(folder.path());
    const LoadedConfig loaded("/elsewhere/c.yaml", text, {});
    expect_found(loaded);
    of_run = to_yaml(loaded.config());
  }
  expect_found(LoadedConfig("/elsewhere/run/config.yaml", of_run, {}));
}

TEST(ConfigPaths, OfAConfigurationAreNotEmpty) {
  const std::string expected =
      "the name of a configuration is empty; expected a YAML file or a shipped configuration such "
      "as quickstart";
  for (const auto& loaded :
       {load_config(""), load_config("quickstart", std::vector<std::string>{"@"})}) {
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error().context, expected);
  }
}

TEST(ConfigPaths, OfAFileThatIsLaidOverAnotherNameNoPipe) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "steps: 2\n", 9), 9);
  ::close(ends[1]);
  const std::string pipe = fmt::format("/dev/fd/{}", ends[0]);
  const auto loaded = load_config("quickstart", std::vector<std::string>{"@" + pipe});
  ::close(ends[0]);
  ASSERT_FALSE(loaded);
  EXPECT_NE(loaded.error().context.find(pipe + ": expected a regular file"), std::string::npos)
      << loaded.error().context;
}

}  // namespace
}  // namespace temper::orchestrator
