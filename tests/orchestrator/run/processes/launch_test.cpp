// Which process does an actor's work.
#include "orchestrator/run/processes/launch.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

namespace temper::orchestrator {
namespace {

using actors::EngineConfig;
using actors::EngineKind;
using Words = std::vector<std::string>;

const ActorPlace kPlace{
    "rollout-0", "ipc:///run/socket", "/run/keys/rollout-0", "/run/logs/rollout-0.log"};

Result<ChildSpec> child(const EngineConfig& engine) {
  return actor_child(kPlace, "/bin/temper-worker", engine);
}

Words arguments() {
  return {"--connect",
          "ipc:///run/socket",
          "--name",
          "rollout-0",
          "--parent",
          std::to_string(::getpid()),
          "--credentials",
          "/run/keys/rollout-0"};
}

Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST(ActorChild, IsOurOwnWorkerUnlessAnEngineIsNamed) {
  const ChildSpec spec = child({}).value();
  EXPECT_EQ(spec.name, "rollout-0");
  EXPECT_EQ(spec.log, "/run/logs/rollout-0.log");
  EXPECT_EQ(spec.command, with({"/bin/temper-worker", "actor"}, arguments()));
  EXPECT_EQ(spec.environment.at("TEMPER_CREDENTIALS"), "/run/keys/rollout-0");
}

TEST(ActorChild, InPythonIsTheInterpreterThatIsNamed) {
  EngineConfig engine;
  engine.kind = EngineKind::Python;
  engine.python = "/opt/venv/bin/python";
  EXPECT_EQ(child(engine).value().command,
            with({"/opt/venv/bin/python", "-m", "temper.worker"}, arguments()));
  engine.python.clear();
  ::setenv("TEMPER_PYTHON", "/venv/bin/python3", 1);
  EXPECT_EQ(child(engine).value().command.front(), "/venv/bin/python3");
  ::unsetenv("TEMPER_PYTHON");
  engine.python = "python-that-nobody-has";
  EXPECT_EQ(child(engine).error().context,
            "engine.python: no executable `python-that-nobody-has` in PATH");
}

TEST(ActorChild, OfAServerIsTheProgramBesideTheWorkers) {
  EngineConfig engine;
  engine.kind = EngineKind::Sglang;
  EXPECT_EQ(child(engine).value().command, with({"/bin/temper-server-worker"}, arguments()));
}

TEST(ActorChild, OfACommandIsGivenItsPlaceInTheEnvironment) {
  EngineConfig engine;
  engine.kind = EngineKind::Command;
  engine.command = {"sh", "-c", "exec my_engine"};
  const ChildSpec spec = child(engine).value();
  EXPECT_TRUE(spec.command.front().ends_with("/sh")) << spec.command.front();
  EXPECT_EQ((Words{spec.command.begin() + 1, spec.command.end()}), (Words{"-c", "exec my_engine"}));
  EXPECT_EQ(spec.environment.at("TEMPER_ENDPOINT"), "ipc:///run/socket");
  EXPECT_EQ(spec.environment.at("TEMPER_NAME"), "rollout-0");
  EXPECT_EQ(spec.environment.at("TEMPER_CREDENTIALS"), "/run/keys/rollout-0");
}

}  // namespace
}  // namespace temper::orchestrator
