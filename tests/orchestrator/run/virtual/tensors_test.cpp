// Tensors of responses in whole simulated runs: no byte is lost, and memory is as predicted.
#include "orchestrator/pipeline/card_shares.hpp"
#include "orchestrator/pipeline/placement.hpp"
#include "tests/orchestrator/run/virtual/placed_runs.hpp"

#include <algorithm>
#include <cmath>

namespace temper::orchestrator::testing {
namespace {

constexpr Bytes kPerToken(1856);
constexpr Bytes kPerResponse(1000);

/// Bytes of complete responses, as events and commands of the log have them.
class Ledger {
 public:
  explicit Ledger(std::int32_t per_group) : ids_(per_group) {}

  void feed(const Record& record) {
    if (const auto* generated = std::get_if<event::Generated>(&record.event)) {
      for (const auto& item : generated->items)
        add(item);
    }
    for (const Command& command : record.commands) {
      if (const auto* released = std::get_if<command::Release>(&command))
        release(*released);
    }
  }
  std::int64_t trained = 0, dropped = 0, held = 0;

 private:
  void add(const event::Generated::Item& item) {
    Tokens& tokens = tokens_[item.response];
    tokens += item.tokens;
    if (item.finish == actors::FinishReason::Interrupted)
      return;
    bytes_[item.response] =
        kPerToken.count() * (item.prompt + tokens).count() + kPerResponse.count();
    held += bytes_[item.response];
  }
  void release(const command::Release& c) {
    for (std::size_t i = 0; i < ids_.per_group(); ++i) {
      if (const auto of = bytes_.extract(ids_.at(c.group, i)); !of.empty()) {
        (c.outcome == Outcome::Trained ? trained : dropped) += of.mapped();
        held -= of.mapped();
      }
    }
  }

  ResponseIds ids_;
  std::map<ResponseId, Tokens> tokens_;
  std::map<ResponseId, std::int64_t> bytes_;
};

PipelineConfig with_tensors(PipelineConfig c) {
  c.simulation.tensors = {.per_token = kPerToken, .per_response = kPerResponse};
  return c;
}

/// Runs it, and expects every byte where the log says that it is.
TensorSummary expect_conserved(const std::string& name,
                               const PipelineConfig& config,
                               Ledger& ledger,
                               const std::function<int()>& stops = nullptr) {
  const SimulatedOutcome ran = run_simulated(
      config, [&](const Record& record) { ledger.feed(record); }, stops);
  EXPECT_TRUE(ran.outcome.finish.ok || stops) << name << ": " << ran.outcome.finish.reason;
  const TensorSummary t = ran.summary.tensors.value_or(TensorSummary{});
  EXPECT_EQ(t.dropped_bytes, ledger.dropped) << name;
  if (stops)  // Engines also hold those of responses that ended since their last report.
    EXPECT_GE(*t.held_bytes, ledger.held) << name;
  else
    EXPECT_EQ(t.held_bytes, ledger.held) << name;
  EXPECT_EQ(t.stored_bytes, ledger.trained + *t.dropped_bytes + *t.held_bytes) << name;
  return t;
}

TEST(Tensors, WhatEnginesWriteIsReadDroppedOrOutstandingInEveryPlacement) {
  for (const auto& [name, config] : placed_runs()) {
    const PipelineConfig c = with_tensors(config);
    ASSERT_EQ(validate(c).size(), 0U) << name;
    Ledger ledger(c.algorithm.responses_per_group);
    const TensorSummary t = expect_conserved(name, c, ledger);
    EXPECT_EQ(t.fetched_bytes, ledger.trained) << name;
    EXPECT_EQ(t.stored_bytes, t.fetched_bytes + *t.dropped_bytes + *t.held_bytes) << name;
    EXPECT_GT(t.fetched_bytes, 0) << name;
    EXPECT_GT(t.fetch_s, 0) << name;
  }
}

TEST(Tensors, ThoseOfEvictedGroupsAreDropped) {
  PipelineConfig c = with_tensors(shipped("cm384_pangu"));
  c.staleness.rule = StalenessRuleKind::Drop;
  c.staleness.bound = 1;
  c.rollout.concurrency = 256;
  ASSERT_EQ(validate(c).size(), 0U);
  Ledger ledger(c.algorithm.responses_per_group);
  const TensorSummary t = expect_conserved("drop", c, ledger);
  EXPECT_EQ(t.fetched_bytes, ledger.trained);
  EXPECT_GT(t.dropped_bytes, 0);
}

TEST(Tensors, ARunThatIsStoppedStillHoldsThoseOfOutstandingResponses) {
  PipelineConfig c = with_tensors(shipped("cm384_pangu"));
  c.steps = 1000;
  Ledger ledger(c.algorithm.responses_per_group);
  int looks = 0;  // Since the end of the first step.
  const TensorSummary t = expect_conserved(
      "stopped", c, ledger, [&] { return ledger.trained > 0 && ++looks > 2 ? 2 : 0; });
  EXPECT_GT(ledger.held, 0);
  EXPECT_GT(t.fetched_bytes, 0);
  // The trainer may have read a batch whose step did not end.
  EXPECT_GE(t.fetched_bytes, ledger.trained);
  EXPECT_LE(t.fetched_bytes, ledger.trained + *t.held_bytes);
}

TEST(Tensors, TheirHostMemoryIsPredicted) {
  for (const char* name : {"cm384_pangu", "cm384_pangu_fused"}) {
    PipelineConfig c = with_tensors(shipped(name));
    // 50 times as much, so that they are most of the memory.
    c.simulation.tensors.per_token = Bytes(50 * kPerToken.count());
    ASSERT_EQ(validate(c).size(), 0U) << name;
    const SimulatedOutcome ran = run_simulated(c);
    for (const actors::RoleKind role : {actors::RoleKind::Rollout, actors::RoleKind::Trainer}) {
      const HighWater host = ran.summary.memory.value().at(role).host;
      const auto predicted = static_cast<double>(host.predicted_bytes);
      // 12 engines with up to 384 responses each, whose lengths deviate by their mean: 5 % of an
      // engine's bytes are one standard deviation.
      EXPECT_LE(static_cast<double>(host.peak_bytes), 1.15 * predicted) << name;
      EXPECT_GE(static_cast<double>(host.peak_bytes), 0.25 * predicted) << name;
    }
  }
}

TEST(Tensors, AConfigurationThatCannotHoldThemIsRefusedWithNumbers) {
  for (const char* name : {"cm384_pangu", "cm384_pangu_fused"}) {
    PipelineConfig c = with_tensors(shipped(name));
    c.simulation.tensors.per_token = Bytes(100'000'000);
    const auto broken = validate(c);
    ASSERT_EQ(broken.size(), 1U) << name;
    EXPECT_NE(broken.front().message.find("GiB of host memory"), std::string::npos);
    EXPECT_NE(broken.front().message.find("rollout tensors of responses (host)"), std::string::npos)
        << broken.front().message;
  }
}

TEST(Tensors, OnSharedCardsTheyStayInEveryPhase) {
  const ResolvedPipeline pipeline = resolve(with_tensors(shipped("cm384_pangu_fused"))).value();
  const double all = pipeline.simulation->outstanding_tensors / (384 * 2);
  EXPECT_GT(all, 0);
  for (const actors::PhaseLedger& phase : memory_ledger(pipeline)) {
    double engine = 0, trainer = 0;
    for (const auto& part : phase.parts)
      (part.role == "rollout" ? engine : trainer) += part.memory.host.tensors;
    EXPECT_DOUBLE_EQ(engine, all) << phase.phase;
    EXPECT_EQ(trainer > 0, phase.phase == "train") << phase.phase;
  }
}

TEST(Tensors, AreRefusedWhereHardwareFails) {
  PipelineConfig c = with_tensors(shipped("cm384_pangu"));
  c.simulation.faults.rate = 1;
  const auto broken = validate(c);
  ASSERT_EQ(broken.size(), 1U);
  EXPECT_EQ(broken.front().keys.front(), "simulation.tensors");
}

}  // namespace
}  // namespace temper::orchestrator::testing
