// Simulated hardware as a user runs it: worker processes and plain objects leave the same log.
#include "core/json_document.hpp"
#include "orchestrator/metrics/card_timeline.hpp"
#include "orchestrator/scheduler/state/config.hpp"
#include "tests/support/gunzip.hpp"
#include "tests/support/trace.hpp"
#include "tests/system/harness.hpp"

#include <poll.h>
#include <signal.h>

#include <algorithm>

namespace temper::test {
namespace {

namespace fs = std::filesystem;

/// Six cards of an H200 machine, a small model, small batches: a fraction of a second of wall time.
constexpr std::string_view kRehearsal = R"(name: rehearsal
hardware: simulated
policy: synthetic
steps: 4
algorithm:
  groups_per_update: 8
  responses_per_group: 4
  minibatches: 1
placement:
  cards: 6
  rollout_cards: 4
  reference_cards: 1
rollout:
  replicas: 4
  concurrency: 16
reward:
  replicas: 2
transport:
  heartbeat: 100ms
  actors_per_worker: 3
simulation:
  cluster: nvidia-h200
  model: qwen3-1.7b
  prompt: {kind: constant, mean: 200}
  response: {kind: lognormal, mean: 800, p99_over_median: 6, cap: 4096}
  trainer: {micro_batch_tokens: 8192}
)";

const std::vector<std::string> kFused{"placement.mode=fused",
                                      "placement.rollout_cards=0",
                                      "placement.reference_cards=0",
                                      "rollout.replicas=3"};

std::vector<std::string> with(std::vector<std::string> sets, const std::vector<std::string>& more) {
  sets.insert(sets.end(), more.begin(), more.end());
  return sets;
}

class Rehearsal : public NamedRunsTest {
 protected:
  Rehearsal() : NamedRunsTest(kRehearsal) {}
  /// As processes and in one process: the same log, clean and replayed.
  void expect_same_in_both_hosts(const std::vector<std::string>& sets) {
    for (const char* folder : {"processes", "one"})
      fs::remove_all(run_folder(folder));
    Arguments mode;
    for (const std::string& set : sets)
      mode.insert(mode.end(), {"--set", set});
    const Ended rehearsal = temper(arguments("processes", mode));
    ASSERT_EQ(rehearsal.status, 0) << rehearsal.output;
    mode.insert(mode.end(), {"--driver", "in-process"});
    const Ended in_process = temper(arguments("one", mode));
    ASSERT_EQ(in_process.status, 0) << in_process.output;
    EXPECT_GT(log_of("processes").size(), 1000U);
    EXPECT_TRUE(log_of("processes") == log_of("one"));
    EXPECT_EQ(temper({"audit", run_folder("processes").string()}).status, 0);
    EXPECT_EQ(temper({"replay", run_folder("processes").string()}).status, 0);
  }
  /// Until its workers have done something.
  void await_under_way(Temper& run) {
    constexpr std::uintmax_t kSome = 4096;
    std::error_code none_yet;
    while (!run.has_ended() &&
           (fs::file_size(run_folder("a") / "events.log", none_yet) < kSome || none_yet)) {
      ::poll(nullptr, 0, 10);
    }
  }
};

TEST_F(Rehearsal, LeavesTheLogOfAnInProcessRunAndOfItsRepetition) {
  const Ended rehearsal = temper(arguments("a", {}));
  ASSERT_EQ(rehearsal.status, 0) << rehearsal.output;
  const Ended repeated = temper(arguments("b", {"--set", "transport.actors_per_worker=1"}));
  ASSERT_EQ(repeated.status, 0) << repeated.output;
  const Ended in_process = temper(arguments("c", {"--driver", "in-process"}));
  ASSERT_EQ(in_process.status, 0) << in_process.output;
  EXPECT_GT(log_of("a").size(), 1000U);
  EXPECT_TRUE(log_of("a") == log_of("b"));
  EXPECT_TRUE(log_of("a") == log_of("c"));
  EXPECT_EQ(processes().size(), 0U);
}

TEST_F(Rehearsal, ItsLogIsCleanAndReplays) {
  ASSERT_EQ(temper(arguments("a", {})).status, 0);
  const Ended audit = temper({"audit", run_folder("a").string()});
  EXPECT_EQ(audit.status, 0) << audit.output;
  EXPECT_EQ(temper({"replay", run_folder("a").string()}).status, 0);
  EXPECT_EQ(temper({"report", run_folder("a").string()}).status, 0);
}

TEST_F(Rehearsal, FusedCardsAreTheSameInBothHostsAlsoWithAFrameworkOrTensors) {
  for (const char* name : {"framework=verl", "framework=cann-recipes", "tensors.per_token=1856B"})
    expect_same_in_both_hosts(with(kFused, {std::string("simulation.") + name}));
}

TEST_F(Rehearsal, LentCardsAreTheSameInBothHostsToo) {
  expect_same_in_both_hosts({"placement.mode=hybrid", "placement.lending=always"});
}

TEST_F(Rehearsal, CardsThatSwitchOneByOneBesideAPreparingTrainerAreTheSameInBothHostsToo) {
  expect_same_in_both_hosts(
      with(kFused, {"placement.switching=one_by_one", "stragglers.prepare=true"}));
}

TEST_F(Rehearsal, JustInTimeAdmissionIsTheSameInBothHostsToo) {
  expect_same_in_both_hosts({"staleness.admission=just_in_time", "staleness.bound=2"});
}

/// The same cards, the trainer's of another kind, over 1 GB/s.
const std::vector<std::string> kTwoClusters{
    "simulation.cluster=\"\"",
    "simulation.clusters=[{hardware: nvidia-h200, cards: 5}, {hardware: cm384, cards: 1}]",
    "simulation.between={bandwidth: 1GB/s, latency: 1ms}"};

TEST_F(Rehearsal, ClustersOfDifferentCardsAreTheSameInBothHostsToo) {
  expect_same_in_both_hosts(kTwoClusters);
}

TEST_F(Rehearsal, EightBitEnginesAreTheSameInBothHostsToo) {
  expect_same_in_both_hosts(
      with(kFused, {"simulation.rollout.weights=fp8", "simulation.rollout.kv_cache=fp8"}));
}

TEST_F(Rehearsal, ResponsesThatCallToolsAreTheSameInBothHostsToo) {
  const std::vector<std::string> tools{"simulation.tools.turn.mean=150",
                                       "simulation.tools.result.mean=80",
                                       "simulation.tools.latency.mean=3s",
                                       "simulation.rollout.chunked_prefill=true"};
  expect_same_in_both_hosts(with(kFused, tools));
  EXPECT_NE(temper({"report", run_folder("one").string()}).output.find("wait-tools"),
            std::string::npos);
}

/// Engines of two cards, one of which only prefills, whose responses call tools.
const std::vector<std::string> kPrefillCards{"simulation.rollout.prefill_cards=1",
                                             "simulation.tools.turn.mean=150",
                                             "simulation.tools.result.mean=80",
                                             "simulation.tools.latency.mean=3s"};

TEST_F(Rehearsal, PrefillCardsAreTheSameInBothHostsInEveryPlacement) {
  const auto one_by_one =
      with(kFused, {"placement.switching=one_by_one", "stragglers.prepare=true"});
  const std::vector<std::string> lent{"placement.mode=hybrid",
                                      "placement.lending=always",
                                      "placement.cards=8",
                                      "placement.reference_cards=2",
                                      "rollout.replicas=2"};
  for (auto sets :
       std::vector<std::vector<std::string>>{{"rollout.replicas=2"}, kFused, one_by_one, lent})
    expect_same_in_both_hosts(with(sets, kPrefillCards));
}

TEST_F(Rehearsal, EnginesThatDraftAreTheSameInBothHostsToo) {
  expect_same_in_both_hosts({"placement={cards: 8, rollout_cards: 2, reference_cards: 2}",
                             "rollout.replicas=1",
                             "simulation.model=pangu-pro-moe-v2-72b",
                             "simulation.trainer={tp: 4, ep: 4, mtp: true}",
                             "simulation.rollout={tp: 2, ep: 2, kv_share: 0.5, weights: fp8_block, "
                             "speculation: {depth: 2, acceptance: 0.6}}"});
  expect_same_in_both_hosts(
      with(kFused,
           {"simulation.rollout.speculation={method: eagle, depth: 3, acceptance: 0.5, "
            "disable_by_batch_size: 8}"}));
}

const std::string kAdapter = "model.lora={rank: 8, targets: [q_proj, v_proj, down_proj]}";

TEST_F(Rehearsal, AdaptersOnFusedCardsAreTheSameInBothHostsToo) {
  expect_same_in_both_hosts(with(kFused, {kAdapter}));
}

TEST_F(Rehearsal, AdaptersOfSeveralVersionsAreTheSameInBothHostsToo) {
  expect_same_in_both_hosts({kAdapter, "rollout.on_new_weights=finish", "staleness.bound=2"});
}

TEST_F(Rehearsal, ReportAndTraceSayOfWhichClusterACardIs) {
  Arguments mode{"--driver", "in-process"};
  for (const std::string& set : kTwoClusters)
    mode.insert(mode.end(), {"--set", set});
  ASSERT_EQ(temper(arguments("a", mode)).status, 0);
  const Ended report = temper({"report", run_folder("a").string()});
  for (const char* what : {"0 to 4: nvidia-h200",
                           "5 to 5: cm384",
                           "trainer of cm384",
                           "between clusters",
                           "not measured on cm384"})
    EXPECT_NE(report.output.find(what), std::string::npos) << what << "\n" << report.output;
  const std::string trace = test::gunzip(run_folder("a") / "trace.json.gz");
  EXPECT_NE(trace.find("card 5 of cm384: trainer"), std::string::npos);
  EXPECT_NE(trace.find("of nvidia-h200: rollout-0"), std::string::npos);
}

TEST_F(Rehearsal, AReferenceBesideOthersAtWorkIsRefused) {
  const Ended ended = temper(arguments("a", {"--set", "placement.reference_cards=0"}));
  EXPECT_NE(ended.status, 0);
  EXPECT_NE(ended.output.find("the reference shares cards with the rollout"), std::string::npos)
      << ended.output;
  EXPECT_NE(ended.output.find("placement.mode: fused"), std::string::npos) << ended.output;
}

TEST_F(Rehearsal, AnEmptyLogIsNoCleanRun) {
  fs::create_directories(run_folder("a"));
  ASSERT_TRUE(write_file_atomically(run_folder("a") / "events.log", ""));
  for (const char* command : {"audit", "replay", "report"}) {
    const Ended ended = temper({command, run_folder("a").string()});
    EXPECT_NE(ended.status, 0) << command;
    EXPECT_NE(ended.output.find("holds no record"), std::string::npos) << ended.output;
  }
}

TEST_F(Rehearsal, AReportOfARunThatWasCutOffSaysHowItGoesOn) {
  ASSERT_EQ(temper(arguments("a", {"--driver", "in-process"})).status, 0);
  const fs::path log = run_folder("a") / "events.log";
  fs::remove(run_folder("a") / "live.json");
  const std::uintmax_t half = fs::file_size(log) / 2;
  std::string said;
  for (const std::uintmax_t size : {half + 1, half}) {  // at most one of them ends a record
    fs::resize_file(log, size);
    const Ended report = temper({"report", run_folder("a").string()});
    EXPECT_EQ(report.status, 0) << report.output;
    EXPECT_NE(report.output.find("unfinished after"), std::string::npos) << report.output;
    EXPECT_NE(report.output.find("temper run --resume " + run_folder("a").string()),
              std::string::npos)
        << report.output;
    said += report.output;
  }
  EXPECT_NE(said.find("last record of events.log is incomplete"), std::string::npos) << said;
}

TEST_F(Rehearsal, CardsThatAreNoWholeEngineAreNotLent) {
  const Ended ended = temper(arguments("a",
                                       {"--set",
                                        "placement.mode=hybrid",
                                        "--set",
                                        "placement.rollout_cards=4",
                                        "--set",
                                        "placement.reference_cards=1",
                                        "--set",
                                        "rollout.replicas=2"}));
  EXPECT_NE(ended.status, 0);
  EXPECT_NE(ended.output.find("nearest: a trainer of 2 cards"), std::string::npos) << ended.output;
}

TEST_F(Rehearsal, ALostWorkerEndsTheRunByName) {
  Temper run(arguments("a", {"--set", "steps=100000"}), {folder(), {}});
  await_under_way(run);
  std::vector<pid_t> workers = processes();
  std::erase(workers, run.pid());
  ASSERT_EQ(workers.size(), 3U) << "eight actors, three to a process";
  ::kill(workers.front(), SIGKILL);
  const Ended ended = run.wait();
  EXPECT_EQ(ended.status, 1) << ended.output;
  EXPECT_NE(ended.output.find("worker-"), std::string::npos) << ended.output;
  EXPECT_NE(ended.output.find("killed by signal 9"), std::string::npos) << ended.output;
  EXPECT_EQ(processes().size(), 0U);
}

TEST_F(Rehearsal, CtrlCEndsItInOrder) {
  Temper run(arguments("a", {"--set", "steps=100000"}), {folder(), {}});
  await_under_way(run);
  run.signal(SIGINT);
  const Ended ended = run.wait();
  EXPECT_EQ(ended.status, 130) << ended.output;
  const Ended audit = temper({"audit", run_folder("a").string()});
  EXPECT_EQ(audit.status, 0) << audit.output;
  EXPECT_EQ(processes().size(), 0U);
}

TEST_F(Rehearsal, TheShippedSupernodeRuns) {
  const fs::path shipped = fs::path(TEMPER_SOURCE_DIR) / "configs/cm384_pangu.yaml";
  const Ended ended = temper({"run",
                              shipped.string(),
                              "--driver",
                              "in-process",
                              "--set",
                              "steps=2",
                              "--set",
                              "run_dir=" + run_folder("a").string()});
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_NE(ended.output.find("finished after 2 steps"), std::string::npos) << ended.output;
  EXPECT_NE(ended.output.find("0-223: rollout-0 to rollout-6, 32 cards each"), std::string::npos);
  EXPECT_EQ(temper({"audit", run_folder("a").string()}).status, 0);
}

TEST_F(Rehearsal, TheTraceHasATrackForEachGroupOfCardsThatSumsToTheWall) {
  ASSERT_EQ(temper(arguments("a", {"--driver", "in-process"})).status, 0);
  const auto trace = parse_json_or_throw(test::gunzip(run_folder("a") / "trace.json.gz"));
  const auto summary =
      parse_json_or_throw(read_file(run_folder("a") / "summary.json").value_or(""));
  const auto ends = test::check_card_tracks(trace);
  EXPECT_EQ(ends.size(), 6U);
  EXPECT_TRUE(ends.contains("card 0: rollout-0"));
  EXPECT_TRUE(ends.contains("card 5: trainer"));
  for (const auto& [track, end] : ends)
    EXPECT_EQ(end, summary.at("utilization").at("wall_ns").get<std::int64_t>()) << track;
}

TEST_F(Rehearsal, ThatHasFinishedIsNotChangedByAResume) {
  const Ended first = temper(arguments("a", {"--driver", "in-process"}));
  ASSERT_EQ(first.status, 0) << first.output;
  const std::string log = read_file(run_folder("a") / "events.log").value();
  const Ended again = temper(arguments("a", {"--driver", "in-process", "--resume"}));
  EXPECT_EQ(again.status, 0) << again.output;
  EXPECT_NE(again.output.find("nothing was changed"), std::string::npos) << again.output;
  EXPECT_EQ(read_file(run_folder("a") / "events.log").value(), log);
}

/// Every configuration in configs/ that only simulates; twins have a test of their own.
std::vector<std::string> shipped_simulations() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(fs::path(TEMPER_SOURCE_DIR) / "configs")) {
    if (entry.path().extension() != ".yaml")
      continue;
    const std::string text = read_file(entry.path()).value_or("");
    if (text.find("\nhardware: simulated\npolicy: synthetic\n") != std::string::npos)
      names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// A shipped configuration on all its cards, with two small updates.
class Shipped : public Rehearsal, public testing::WithParamInterface<std::string> {
 protected:
  Ended run_on(std::string_view driver, const std::string& name) {
    const fs::path config = fs::path(TEMPER_SOURCE_DIR) / "configs" / (GetParam() + ".yaml");
    return temper({"run",
                   config.string(),
                   "--plain",
                   "--driver",
                   std::string(driver),
                   "--set",
                   "steps=2",
                   "--set",
                   "algorithm.groups_per_update=16",
                   "--set",
                   "transport.actors_per_worker=16",
                   "--set",
                   "run_dir=" + run_folder(name).string()});
  }
};

TEST_P(Shipped, LeavesTheSameLogWhenRepeatedAndAsProcesses) {
  const Ended first = run_on("in-process", "a");
  ASSERT_EQ(first.status, 0) << first.output;
  const Ended repeated = run_on("in-process", "b");
  ASSERT_EQ(repeated.status, 0) << repeated.output;
  const Ended rehearsal = run_on("rehearsal", "c");
  ASSERT_EQ(rehearsal.status, 0) << rehearsal.output;
  EXPECT_GT(log_of("a").size(), 1000U);
  EXPECT_TRUE(log_of("a") == log_of("b"));
  EXPECT_TRUE(log_of("a") == log_of("c"));
  const Ended audit = temper({"audit", run_folder("a").string()});
  EXPECT_EQ(audit.status, 0) << audit.output;
  const Ended replay = temper({"replay", run_folder("a").string()});
  EXPECT_EQ(replay.status, 0) << replay.output;
}

TEST_P(Shipped, StaysWithinItsPeaksItsMemoryAndWhatWasPredicted) {
  const Ended run = run_on("in-process", "a");
  ASSERT_EQ(run.status, 0) << run.output;
  const auto summary =
      parse_json_or_throw(read_file(run_folder("a") / "summary.json").value_or(""));
  const auto& mfu = summary.at("mfu");
  double flops = 0;
  for (const auto& [role, m] : mfu.at("roles").items()) {
    flops += m.at("flops").get<double>();
    EXPECT_GT(m.at("mfu").get<double>(), 0) << role;
    EXPECT_LE(m.at("mfu").get<double>(), m.at("while_busy").get<double>() + 1e-12) << role;
    EXPECT_LT(m.at("while_busy").get<double>(), 0.7) << role;
  }
  EXPECT_NEAR(mfu.at("flops").get<double>(), flops, 1e-9 * flops);
  for (const auto& [role, memory] : summary.at("memory").items()) {
    const auto& device = memory.at("device");
    EXPECT_GT(device.at("peak_bytes"), 0) << role;
    EXPECT_LE(device.at("peak_bytes"), device.at("predicted_bytes")) << role;
    EXPECT_LE(device.at("predicted_bytes"), device.at("capacity_bytes")) << role;
    const auto& host = memory.at("host");
    EXPECT_LE(host.at("peak_bytes"), host.at("capacity_bytes")) << role;
    if (role != "rollout") {  // whose preempted responses park their caches there
      EXPECT_LE(host.at("peak_bytes"), host.at("predicted_bytes")) << role;
    }
  }
  std::int64_t all = 0;
  for (const auto& plane : summary.at("network").at("planes")) {
    std::int64_t bytes = 0;
    for (const auto& [role, part] : plane.at("roles").items())
      bytes += part.get<std::int64_t>();
    EXPECT_EQ(plane.at("bytes"), bytes) << plane;
    EXPECT_LT(plane.at("share").get<double>(), 1) << plane;
    all += bytes;
  }
  EXPECT_GT(all, 0);
}

TEST_P(Shipped, HasNoTwoActorsAtWorkOnOneCardAtOnce) {
  const Ended run = run_on("in-process", "a");
  ASSERT_EQ(run.status, 0) << run.output;
  std::vector<orchestrator::ActorSpec> slots;
  std::map<CardId, std::vector<std::pair<Time, Time>>> at_work;
  const auto read = orchestrator::read_event_log(
      run_folder("a") / "events.log", [&](const orchestrator::Record& record) {
        if (const auto* started = std::get_if<orchestrator::event::Started>(&record.event))
          slots = started->config->actors;
        const auto* activity = std::get_if<orchestrator::event::Activity>(&record.event);
        if (activity == nullptr)
          return Status();
        for (const actors::Span& span : activity->spans) {
          if (!orchestrator::is_busy(span.state))
            continue;
          for (const CardId card : slots.at(activity->actor.value()).cards)
            at_work[card].emplace_back(span.begin, span.end);
        }
        return Status();
      });
  ASSERT_TRUE(read) << read.error().context;
  EXPECT_FALSE(at_work.empty());
  for (auto& [card, spans] : at_work) {
    std::sort(spans.begin(), spans.end());
    for (std::size_t i = 1; i < spans.size(); ++i)
      ASSERT_LE(spans[i - 1].second, spans[i].first) << "card " << card.value();
  }
}

INSTANTIATE_TEST_SUITE_P(Configs,
                         Shipped,
                         testing::ValuesIn(shipped_simulations()),
                         [](const auto& config) { return config.param; });

}  // namespace
}  // namespace temper::test
