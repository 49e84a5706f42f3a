#include "orchestrator/scheduler/state/config.hpp"

#include "cli/run/check_command.hpp"
#include "core/files.hpp"
#include "orchestrator/pipeline/config_reference.hpp"
#include "orchestrator/pipeline/load.hpp"
#include "orchestrator/pipeline/placement.hpp"
#include "orchestrator/pipeline/resolve.hpp"
#include "tests/support/temporary_folder.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>

namespace temper::orchestrator {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;
using cli::CheckOptions;
using cli::run_check;

const fs::path kSource = TEMPER_SOURCE_DIR;

/// The file must have `text`; with TEMPER_UPDATE_GOLDEN=1 it is written instead.
void expect_golden(const fs::path& path, const std::string& text) {
  if (const char* update = std::getenv("TEMPER_UPDATE_GOLDEN"); update && *update == '1') {
    ASSERT_TRUE(write_file_atomically(path, text));
  }
  const Result<std::string> golden = read_file(path);
  ASSERT_TRUE(golden) << golden.error().context;
  EXPECT_EQ(text, *golden) << path << " is stale; TEMPER_UPDATE_GOLDEN=1 rewrites it";
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    out.push_back(line);
  return out;
}

PipelineConfig good(std::string_view text, const std::vector<std::string>& sets = {}) {
  const LoadedConfig loaded("x.yaml", text, sets);
  EXPECT_EQ(render(loaded.issues()), "");
  return loaded.config();
}

std::vector<std::uint32_t> numbers(const std::vector<CardId>& cards) {
  std::vector<std::uint32_t> out;
  for (const CardId card : cards)
    out.push_back(card.value());
  return out;
}

using Cards = std::vector<std::uint32_t>;

TEST(BrokenConfigs, AreReportedWordForWord) {
  const fs::path folder = kSource / "tests/golden/config";
  std::size_t cases = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    SCOPED_TRACE(entry.path().filename().string());
    const std::string text = read_file(entry.path() / "config.yaml").value();
    std::vector<std::string> sets;
    if (fs::exists(entry.path() / "sets.txt"))
      sets = lines(read_file(entry.path() / "sets.txt").value());
    const LoadedConfig loaded("config.yaml", text, sets);
    EXPECT_FALSE(loaded.issues().empty());
    expect_golden(entry.path() / "expected.txt", render(loaded.issues()));
    ++cases;
  }
  EXPECT_GE(cases, 20U);
}

TEST(ConfigReference, IsUpToDate) {
  expect_golden(kSource / "docs/reference/config.md", write_config_reference());
}

TEST(ConfigReference, EveryKeyHasASentence) {
  for (const std::string& line : lines(write_config_reference()))
    EXPECT_FALSE(line.starts_with("| `") && line.ends_with("|  |")) << line;
}

TEST(ShippedConfigs, AreValid) {
  // Without models that are downloaded or trained first.
  std::map<std::string, std::vector<std::string>> without_model{
      {"smollm2", {"model.path=''"}},
      {"distillation", {"reference.model=''", "algorithm.name=grpo"}}};
  std::size_t files = 0;
  for (const char* folder : {"configs", "configs/recipes"}) {
    for (const auto& entry : fs::directory_iterator(kSource / folder)) {
      if (entry.path().extension() != ".yaml")
        continue;
      const auto config = load_config(entry.path(), without_model[entry.path().stem().string()]);
      EXPECT_TRUE(config) << config.error().context;
      ++files;
    }
  }
  EXPECT_GE(files, 9U);
}

TEST(LoadConfig, FindsATaskBesideTheFile) {
  const std::vector<std::string> sets{"model.path=''"};
  const auto config = load_config(kSource / "configs/smollm2.yaml", sets);
  ASSERT_TRUE(config) << config.error().context;
  EXPECT_EQ(config->task.path, (kSource / "configs/tasks/sums.jsonl").string());
}

TEST(LoadConfig, TheResolvedTextReadsBackIdentically) {
  const PipelineConfig config =
      good("name: a\nverifier: {kind: command, command: [python3, 'a b.py']}\n",
           {"transport.heartbeat=100ms", "placement.cards=3", "placement.rollout=[2, 0]"});
  const std::string text = to_yaml(config);
  EXPECT_EQ(to_yaml(good(text)), text);
  EXPECT_NE(text.find("heartbeat: 100ms"), std::string::npos);
  EXPECT_NE(text.find("rollout: [2, 0]"), std::string::npos);
}

TEST(LoadConfig, AMissingFileIsNamed) {
  const auto config = load_config("/nowhere/x.yaml");
  ASSERT_FALSE(config);
  EXPECT_NE(config.error().context.find("/nowhere/x.yaml"), std::string::npos);
}

TEST(LoadConfig, HardwareOfOnesOwnMayLieBesideTheFileThatNamesIt) {
  const test::TemporaryFolder folder;
  fs::copy_file(kSource / "docs/cluster/my-h100.yaml", folder / "my-h100.yaml");
  ASSERT_TRUE(write_file_atomically(folder / "run.yaml",
                                    "hardware: simulated\npolicy: synthetic\n"
                                    "placement: {cards: 8}\nrollout: {replicas: 4}\n"
                                    "reference: {replicas: 0}\n"
                                    "simulation: {cluster: my-h100.yaml, model: qwen2.5-0.5b}\n"));
  const auto config = load_config(folder / "run.yaml");
  ASSERT_TRUE(config) << config.error().context;
  EXPECT_EQ(config->simulation.cluster, (folder / "my-h100.yaml").string());
  EXPECT_EQ(config->simulation.model, "qwen2.5-0.5b");
}

TEST(LoadConfig, AFileIsLaidOverTheOneThatItExtendsAndOthersOverBoth) {
  const test::TemporaryFolder folder;
  const auto put = [&](const char* name, std::string_view text) {
    ASSERT_TRUE(make_folder(fs::path(folder / name).parent_path()));
    ASSERT_TRUE(write_file_atomically(folder / name, text));
  };
  put("base.yaml", "name: base\nsteps: 5\nalgorithm: {kl: 0.5, minibatches: 2}\n");
  put("experiments/kl.yaml", "extends: ../base.yaml\nalgorithm:\n  kl: 0.25\n");
  put("long.yaml", "steps: 50\n");
  const std::string over = "@" + (folder / "long.yaml").string();
  const auto config = load_config(folder / "experiments/kl.yaml",
                                  std::vector<std::string>{over, "algorithm.minibatches=4"});
  ASSERT_TRUE(config) << config.error().context;
  EXPECT_EQ(config->name, "base");
  EXPECT_EQ(config->steps, 50U);
  EXPECT_EQ(config->algorithm.kl, 0.25);
  EXPECT_EQ(config->algorithm.minibatches, 4);
}

TEST(LoadConfig, AFileThatIsLaidOverMayExtendAnotherAndThatMayBeAShippedOne) {
  const test::TemporaryFolder folder;
  ASSERT_TRUE(write_file_atomically(folder / "mine.yaml", "extends: quickstart\nname: mine\n"));
  ASSERT_TRUE(write_file_atomically(folder / "below.yaml", "steps: 7\nseed: 3\n"));
  ASSERT_TRUE(write_file_atomically(folder / "over.yaml", "extends: below.yaml\nsteps: 9\n"));
  const std::string over = "@" + (folder / "over.yaml").string();
  const auto config = load_config(folder / "mine.yaml", std::vector<std::string>{over});
  ASSERT_TRUE(config) << config.error().context;
  EXPECT_EQ(config->name, "mine");
  EXPECT_EQ(config->algorithm.learning_rate, 4e-4) << "from the shipped configuration";
  EXPECT_EQ(config->steps, 9U);
  EXPECT_EQ(config->seed, 3U);
}

TEST(LoadConfig, WhatIsWrongInAnExtendedFileIsSaidOfThatFile) {
  const test::TemporaryFolder folder;
  ASSERT_TRUE(write_file_atomically(folder / "base.yaml", "name: base\nstep: 5\n"));
  ASSERT_TRUE(write_file_atomically(folder / "a.yaml", "extends: base.yaml\nsteps: many\n"));
  const std::string said = load_config(folder / "a.yaml").error().context;
  EXPECT_NE(said.find("base.yaml:2: step: unknown key"), std::string::npos) << said;
  EXPECT_NE(said.find("a.yaml:2: steps: expected an integer"), std::string::npos) << said;
  ASSERT_TRUE(write_file_atomically(folder / "a.yaml", "extends: a.yaml\n"));
  EXPECT_NE(load_config(folder / "a.yaml").error().context.find("forms a cycle"),
            std::string::npos);
  ASSERT_TRUE(write_file_atomically(folder / "a.yaml", "extends: none.yaml\n"));
  EXPECT_NE(load_config(folder / "a.yaml").error().context.find("a.yaml: extends: "),
            std::string::npos);
}

TEST(LoadConfig, AShippedConfigurationIsFoundByItsName) {
  for (const char* name : {"quickstart", "quickstart.yaml", "configs/quickstart.yaml"})
    EXPECT_TRUE(fs::exists(found_config(name))) << name;
  EXPECT_EQ(found_config("elsewhere/quickstart.yaml"), "elsewhere/quickstart.yaml");
  EXPECT_EQ(found_config("nothing"), "nothing");
}

TEST(LoadConfig, AllIssuesAreTheContextOfTheError) {
  const auto config =
      load_config(kSource / "configs/quickstart.yaml", std::vector<std::string>{"a=1", "steps=x"});
  ASSERT_FALSE(config);
  EXPECT_EQ(lines(config.error().context).size(), 2U) << config.error().context;
  EXPECT_FALSE(config.error().context.ends_with('\n'));
}

TEST(LoadConfig, ARuleOnAKeyThatCouldNotBeReadIsNotReportedToo) {
  // model.heads keeps its default of 4, which does not divide 62; that would mislead.
  const LoadedConfig loaded("x.yaml", "model: {hidden: 62, heads: two}\nname: ''\n", {});
  ASSERT_EQ(loaded.issues().size(), 2U) << render(loaded.issues());
  EXPECT_EQ(loaded.issues()[0].key, "model.heads");
  EXPECT_EQ(loaded.issues()[1].key, "name") << "independent rules are still checked";
}

TEST(LoadConfig, ARuleBlamesTheLineOfItsKey) {
  const LoadedConfig loaded("x.yaml", "name: a\nmodel:\n  hidden: 64\n  context: 16\n", {});
  EXPECT_TRUE(loaded.issues().empty());
  const auto broken = validate(loaded.config(), Tokens(20));
  ASSERT_EQ(broken.size(), 1U);
  const ConfigIssue issue = loaded.blame(broken[0]);
  EXPECT_EQ(issue.location, "x.yaml:4");
  EXPECT_EQ(issue.key, "model.context");
  EXPECT_EQ(issue.message,
            "must fit the longest prompt (20 tokens) and sampling.max_new_tokens (8), found 16");
}

TEST(Placement, SeparateSplitsTheCards) {
  struct Case {
    std::vector<std::string> sets;
    Cards rollout, trainer, reference, reward;
  };
  const Case cases[] = {
      {{}, {0}, {1}, {0}, {0}},
      {{"placement.cards=3"}, {0, 1}, {2}, {0, 1}, {0, 1}},
      {{"placement.cards=4"}, {0, 1}, {2, 3}, {0, 1}, {0, 1}},
      {{"placement.cards=4", "placement.trainer=[0]"}, {1, 2, 3}, {0}, {1, 2, 3}, {1, 2, 3}},
      {{"placement.cards=4", "placement.rollout=[3]", "placement.reward=[3]"},
       {3},
       {0, 1, 2},
       {3},
       {3}},
  };
  for (const Case& c : cases) {
    const PlacementConfig p = resolve_placement(good("name: a", c.sets));
    EXPECT_EQ(numbers(p.rollout), c.rollout);
    EXPECT_EQ(numbers(p.trainer), c.trainer);
    EXPECT_EQ(numbers(p.reference), c.reference);
    EXPECT_EQ(numbers(p.reward), c.reward);
  }
}

TEST(Placement, ColocatedGivesEveryRoleEveryCard) {
  const PlacementConfig p = resolve_placement(good("placement: {mode: colocated, cards: 3}"));
  for (const auto& list : {p.rollout, p.trainer, p.reference, p.reward})
    EXPECT_EQ(numbers(list), (Cards{0, 1, 2}));
  good("placement: {mode: colocated, cards: 1}");
}

TEST(Placement, FusedRolesTakeTurnsOnEveryCard) {
  const SchedulerConfig config = scheduler_config(
      *resolve(good("placement: {mode: fused, cards: 3}\nrollout: {replicas: 3}\n")));
  EXPECT_EQ(config.placement(), "fused");
  for (const ActorSpec& actor : config.actors) {
    const bool turns =
        actor.role == actors::RoleKind::Rollout || actor.role == actors::RoleKind::Reference;
    EXPECT_EQ(actor.takes_turns, turns) << actor.name;
  }
}

TEST(Placement, HybridLendsTheTrainersCardsAsEnginesLikeTheOthers) {
  const SchedulerConfig config = scheduler_config(
      *resolve(good("placement: {mode: hybrid, cards: 6, rollout_cards: 2, lending: always}\n"
                    "rollout: {replicas: 1}\nreference: {replicas: 0}\n")));
  EXPECT_EQ(config.placement(), "hybrid");
  EXPECT_EQ(config.lending, LendingRule::Always);
  ASSERT_EQ(config.actors.size(), 5U);  // Three engines, a reward, the trainer.
  EXPECT_EQ(numbers(config.actors[0].cards), (Cards{0, 1}));
  EXPECT_FALSE(config.actors[0].takes_turns);
  EXPECT_EQ(config.actors[2].name, "rollout-2");
  EXPECT_TRUE(config.actors[1].takes_turns && config.actors[2].takes_turns);
  EXPECT_EQ(numbers(config.actors[4].cards), (Cards{2, 3, 4, 5}));
}

TEST(Placement, AReplicaTakesItsShare) {
  const std::vector<CardId> cards{CardId(4), CardId(5), CardId(6)};
  EXPECT_EQ(numbers(share_of(cards, 0, 1)), (Cards{4, 5, 6}));
  EXPECT_EQ(numbers(share_of(cards, 0, 2)), (Cards{4, 6}));
  EXPECT_EQ(numbers(share_of(cards, 1, 2)), (Cards{5}));
  EXPECT_EQ(numbers(share_of(cards, 2, 3)), (Cards{6}));
  EXPECT_EQ(numbers(share_of(cards, 4, 5)), (Cards{5})) << "more replicas than cards";
}

TEST(Placement, EverySlotHasItsNameAndCards) {
  const SchedulerConfig config = scheduler_config(
      *resolve(good("rollout: {replicas: 2, concurrency: 7}\nreference: {replicas: 0}\n"
                    "placement: {cards: 4}\nstaleness: {bound: 1}\ncheckpoint: {every: 5}\n")));
  ASSERT_EQ(config.actors.size(), 4U);
  EXPECT_EQ(config.actors[0].name, "rollout-0");
  EXPECT_EQ(numbers(config.actors[0].cards), Cards{0});
  EXPECT_EQ(config.actors[0].concurrency, 7);
  EXPECT_EQ(numbers(config.actors[1].cards), Cards{1});
  EXPECT_EQ(config.actors[2].name, "reward-0");
  EXPECT_EQ(config.actors[3].name, "trainer");
  EXPECT_EQ(numbers(config.actors[3].cards), (Cards{2, 3}));
  EXPECT_EQ(config.staleness_bound, 1U);
  EXPECT_EQ(config.checkpoint_every, 5U);
  EXPECT_FALSE(config.has_reference());
}

TEST(Rewards, ALeaseIsAnsweredBeforeItsDeadlineEvenIfNoReplyComes) {
  struct Case {
    std::int32_t pool;
    const char* verifier;  ///< verifier.deadline.
    const char* reward;    ///< deadlines.reward.
  };
  for (const Case& c : {Case{2, "5s", "1min"},
                        {1, "5s", "1min"},
                        {256, "5s", "1min"},
                        {4, "1ms", "1min"},
                        {4, "1min", "1min"},
                        {1, "10min", "1min"},
                        {8, "30s", "1min"},
                        {2, "5s", "10ms"},
                        {3, "7s", "1h"},
                        {2, "14999ms", "1min"}}) {
    const SchedulerConfig config = scheduler_config(*resolve(
        good(fmt::format("verifier: {{kind: command, command: [sh], pool: {}, deadline: {}}}\n"
                         "deadlines: {{reward: {}}}\n",
                         c.pool,
                         c.verifier,
                         c.reward))));
    const Duration deadline =
        good(fmt::format("verifier: {{deadline: {}}}\n", c.verifier)).verifier.deadline;
    EXPECT_GE(config.judge_batch, std::min(c.pool, config.score_batch));
    EXPECT_LE(config.judge_batch, config.score_batch);
    const std::int32_t rounds = (config.judge_batch + c.pool - 1) / c.pool;
    // One lease running, one queued, one for an evaluation.
    EXPECT_LE(3 * rounds * deadline, config.deadlines.reward - deadline) << c.verifier;
  }
}

TEST(Rewards, OtherVerifiersAreGivenFullLeases) {
  for (const char* const verifier :
       {"{kind: exact}", "{kind: numeric}", "{kind: python, function: \"a:f\"}"}) {
    const SchedulerConfig config =
        scheduler_config(*resolve(good(fmt::format("verifier: {}\n", verifier))));
    EXPECT_GE(config.judge_batch, config.score_batch) << verifier;
  }
}

TEST(Check, PrintsAConfigurationThatIsItselfValid) {
  std::ostringstream out;
  std::ostringstream err;
  const std::string path = (kSource / "configs/quickstart.yaml").string();
  EXPECT_EQ(run_check({.config = path, .sets = {"steps=7"}}, out, err), 0);
  EXPECT_EQ(err.str(), "");
  EXPECT_EQ(good(out.str()).steps, 7U);
  EXPECT_NE(out.str().find("# cards\n#   rollout-0      [0]\n"), std::string::npos) << out.str();
}

TEST(Check, PrintsOnlyWhatIsChangedWhichIsAConfigurationOfTheSame) {
  std::ostringstream all, changed, err;
  const std::string path = (kSource / "configs/cm384_pangu.yaml").string();
  using Keys = CheckOptions::Keys;
  ASSERT_EQ(run_check({.config = path, .sets = {"steps=7"}, .keys = Keys::All}, all, err), 0);
  ASSERT_EQ(run_check({.config = path, .sets = {"steps=7"}}, changed, err), 0);
  const std::vector<std::string> sets{"steps=7"};
  EXPECT_EQ(to_yaml(good(changed.str())), to_yaml(load_config(path, sets).value()));
  const auto keys = [](const std::string& text) {
    return std::ranges::count_if(
        lines(text), [](const std::string& line) { return !line.empty() && line[0] != '#'; });
  };
  EXPECT_LT(keys(changed.str()), keys(all.str()) / 2) << changed.str();
}

TEST(Check, NamesAFileThatIsNotThereOnce) {
  std::ostringstream out, err;
  EXPECT_EQ(run_check({.config = "nope.yaml", .sets = {}}, out, err), 2);
  EXPECT_EQ(err.str(),
            "temper: nope.yaml does not exist; expected a YAML file or a shipped configuration "
            "such as quickstart\n");
}

TEST(Check, FailsWithEveryIssueOnItsOwnLine) {
  std::ostringstream out;
  std::ostringstream err;
  const std::string path = (kSource / "configs/quickstart.yaml").string();
  EXPECT_EQ(run_check({.config = path, .sets = {"step=7"}}, out, err), 2);
  EXPECT_EQ(out.str(), "");
  EXPECT_EQ(err.str(), "--set step=7: step: unknown key; did you mean `steps`?\n");
  EXPECT_EQ(run_check({.config = "/nowhere.yaml", .sets = {}}, out, err), 2);
}

TEST(Check, LooksAtFilesProgramsCardsAndTheLongestPrompt) {
  const std::string path = (kSource / "configs/quickstart.yaml").string();
  const auto said = [&](std::vector<std::string> sets) {
    std::ostringstream out;
    std::ostringstream err;
    EXPECT_EQ(run_check({.config = path, .sets = std::move(sets)}, out, err), 2) << out.str();
    return err.str();
  };
  EXPECT_NE(said({"task.kind=jsonl", "task.path=/nowhere.jsonl"}).find("/nowhere.jsonl"),
            std::string::npos);
  EXPECT_NE(said({"verifier.kind=command", "verifier.command=[verfiy-it]"})
                .find("--set verifier.command=[verfiy-it]: verifier.command: no executable "
                      "`verfiy-it` in PATH"),
            std::string::npos);
  EXPECT_NE(said({"alarms.on_alarm=[/no/such/program]"}).find("alarms.on_alarm"),
            std::string::npos);
  EXPECT_NE(said({"placement.cards=4096"}).find("cores of this machine"), std::string::npos);
  EXPECT_NE(said({"model.context=8"}).find("model.context"), std::string::npos);
}

TEST(Check, JsonHoldsTheIssuesOrTheConfiguration) {
  std::ostringstream out;
  std::ostringstream err;
  const std::string path = (kSource / "configs/quickstart.yaml").string();
  CheckOptions options{.config = path, .sets = {}, .format = CheckOptions::Format::Json};
  EXPECT_EQ(run_check(options, out, err), 0);
  EXPECT_NE(out.str().find("\"name\": \"trainer\""), std::string::npos);
  options.sets = {"step=7"};
  out.str("");
  EXPECT_EQ(run_check(options, out, err), 2);
  EXPECT_NE(out.str().find("\"location\": \"--set step=7\""), std::string::npos);
  EXPECT_EQ(err.str(), "");
}

TEST(Transport, PlainConnectionsArePossibleOnlyWhereNoOtherMachineReachesThem) {
  PipelineConfig config;
  config.transport.kind = TransportKind::Tcp;
  const auto blamed = [&](const std::string& address, TransportSecurity security) {
    config.transport.bind = address;
    config.transport.security = security;
    for (const BrokenRule& rule : validate(config)) {
      if (rule.keys.front() == "transport.security")
        return true;
    }
    return false;
  };
  for (const char* local : {"127.0.0.1", "127.1.2.3", "localhost", "[::1]"})
    EXPECT_FALSE(blamed(local, TransportSecurity::Plain)) << local;
  for (const char* open : {"0.0.0.0", "192.0.2.1", "*", "eth0"}) {
    EXPECT_TRUE(blamed(open, TransportSecurity::Plain)) << open;
    EXPECT_FALSE(blamed(open, TransportSecurity::Curve)) << open;
  }
}

}  // namespace
}  // namespace temper::orchestrator
