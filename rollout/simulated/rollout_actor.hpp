// The rollout actor on simulated hardware: one engine on its cards, with continuous batching
// (rollout/simulated/batch.hpp), at the cost of rollout/simulated/engine_cost.hpp.
//
// Time. The engine performs one operation at a time: a prefill step, a run of decode steps up to
// the next one at which a response ends or the cache is full, a commit of weights, a switch action.
// A run of k steps that begins at t ends at t + ceil_ns(seconds(k)). It is rounded up once for the
// run, not for each step, so step i ends at t + ceil_ns(seconds(i)), and at any time the number of
// finished steps is well defined. Generate, Cancel, Withdraw, CommitWeights and Switch take effect,
// in order, at the end of the current step (a run is cut there; at its very beginning it is undone,
// as is a prefill step). StageWeights takes effect at once and overlaps with everything else.
// advance() alone changes nothing: the messages do not depend on how time is divided into calls.
// next_event() is not the end of a step but the next time at which there may be a message; the
// steps until then are computed when the engine is queried or receives a message.
//
// Prefill precedes decode; with chunked prefill, a mixed step does both. Weights: staging takes
// actors::publish_seconds(), committing actors::swap_seconds(). Running responses continue with the
// new version, with their cache kept or recomputed, or end under theirs, whose weights are held
// until then. Switch actions that move no bytes take no time: Interrupt, FreeKv, FreeWeights (the
// weights are dropped, as the trainer has them); AllocateKv writes the cache once. On exclusive
// cards an engine starts with weights and cache; co-located it starts with neither. Co-located, a
// version that is staged while the engine has weights is stored on its hosts, and is committed from
// there (actors::publish_beside(), swap_beside_seconds()). Responses that cannot be generated for
// lack of weights or cache wait for them.
//
// Uses: the FLOP of its tokens, the exchanges of its steps, weights as they arrive (from the
// trainer, to its hosts and back), copies of parked caches. Memory: weights, the KV blocks in use,
// the rest of the ledger; in host memory the staged version, parked caches and tensors of responses
// (rollout/simulated/held_tensors.hpp).
//
// Disaggregated prefill (rollout/simulated/prefill_instance.hpp): batches of the prefill instance
// are computed beside the decode steps. The end of one takes effect like a message: its responses
// run from the next step on, and the next batch begins. A commit or a switch action ends the
// current batch without result; it begins again afterwards. While no response decodes, the engine
// is in the state prefill until the batch is done or a message takes effect.
//
// Tools: while responses run, those that wait for a tool take no time. Once all that are left wait,
// the engine waits too, in the state wait-tools. An answer takes effect like a message.
//
// Reports: finished responses, and tokens of canceled ones, are collected and sent `report_every`
// after the first of them, at once when the engine becomes idle, and before the answer to a switch.
// Activity is sent before other messages.
#pragma once

#include "actors/protocol/counted.hpp"
#include "actors/protocol/lifecycle.hpp"
#include "actors/protocol/weights.hpp"
#include "actors/simulation/lengths.hpp"
#include "actors/simulation/role_memory.hpp"
#include "actors/simulation/simulated_actor.hpp"
#include "actors/simulation/usage_meter.hpp"
#include "actors/simulation/weight_moves.hpp"
#include "rollout/engine.hpp"
#include "rollout/simulated/batch.hpp"
#include "rollout/simulated/engine_cost.hpp"
#include "rollout/simulated/held_tensors.hpp"
#include "rollout/simulated/open_calls.hpp"
#include "rollout/simulated/prefill_instance.hpp"

#include <deque>
#include <memory>
#include <variant>

namespace temper::rollout {

class SimulatedRollout final : public actors::SimulatedActor {
 public:
  /// Engines with equal settings may share `publications`.
  SimulatedRollout(actors::SimulationSettings settings,
                   std::uint64_t seed,
                   PolicyVersion first,
                   OnNewWeights on_new_weights = OnNewWeights::KeepKv,
                   std::shared_ptr<actors::Publications> publications =
                       std::make_shared<actors::Publications>());

  /// Errors: a layout that does not divide, weights or cache that do not fit, invalid lengths.
  Status start(Time now, actors::Outbox& out) override;
  Status on_message(const actors::IncomingMessage& message, Time now, actors::Outbox& out) override;
  Status advance(Time now, actors::Outbox& out) override;
  std::optional<Time> next_event() const override { return next_message_; }

  struct Counters {
    std::int64_t decode_steps = 0;
    std::int64_t prefill_steps = 0;
    std::int64_t preemptions = 0;
    std::int64_t most_blocks = 0;  ///< Most blocks that a decode step used.
    std::int64_t blocks = 0;       ///< Existing blocks.
  };
  /// Requires: started.
  Counters counters() const;

 private:
  using Control = std::variant<actors::CountedGenerate,
                               actors::Cancel,
                               actors::Withdraw,
                               actors::CommitWeights,
                               actors::Switch,
                               Batch::Call>;  ///< Its answer has come.
  enum class Operation { None, Loading, Prefill, Mixed, Decode, Tools, Commit, Allocate };

  /// The devices that decode, or those that prefill, and bytes on each.
  struct Instance {
    std::int64_t cards = 0;
    double devices = 0;
    double weights = 0;
    double version = 0;
    double draft = 0;  ///< Of the weights, those that stay while other roles have the cards.
    double kv = 0;
    double other = 0;
  };
  /// Bytes that the actor holds, over all of its devices.
  struct HeldMemory {
    Bytes device, host;
  };

  /// When its state next changes by itself.
  std::optional<Time> next_change() const;
  std::optional<Time> compute_next_message();
  /// Applies all changes up to `now`.
  void run_until(Time now, actors::Outbox& out);
  void begin(Operation what, Time now, Duration takes);
  void cut(Time now);
  void finish(Time now, actors::Outbox& out);
  void start_next(Time now, actors::Outbox& out);
  void handle(actors::CountedGenerate& work);
  void handle(actors::Cancel& work);
  void handle(const Batch::Call& call);
  void handle(actors::Withdraw& work, Time now, actors::Outbox& out);
  void handle(actors::CommitWeights& work, Time now, actors::Outbox& out);
  void handle(actors::Switch& work, Time now, actors::Outbox& out);
  Status perform(actors::SwitchAction action);
  Status make_instances();
  /// Sum over the devices of both instances, of bytes on each.
  double on_all(double Instance::*bytes) const;
  BatchLimits limits() const;
  bool copying_pays(const PrefillPiece& piece) const;
  bool parks(PrefillPiece piece) const;
  void start_step(Time now);
  void start_prefill(Time now);
  void start_decode(Time now);
  Time decode_end(std::int64_t steps) const;
  HeldMemory held() const;
  void answer(const actors::Switch& work,
              HeldMemory before,
              std::string error,
              Time now,
              actors::Outbox& out);
  void note_activity(Time end);
  void report(Time now, actors::Outbox& out);
  void send_activity(Time now, actors::Outbox& out);
  std::int64_t steps_until(Time now) const;
  void stage(PolicyVersion version, Time now);
  void stop(Time now, actors::Outbox& out);
  void count_steps(std::int64_t steps);
  void count_prefill();
  /// The pending prefills that are copies to the devices that decode.
  std::deque<PrefillPiece> copied_pieces() const;
  void count_prefill_batch(const PrefillInstance::BatchCost& batch);
  void count_held();
  /// Counts the tensors of responses that ended.
  void keep_tensors();
  void release(const actors::CountedRelease& released);
  /// Bytes in host memory of one device beyond the staged version.
  double kept_on_host() const;
  double staged_bytes() const { return beside_ ? version_bytes_ : staged_bytes_; }
  double each() const { return static_cast<double>(settings_.response_weight); }

  // Constant after start().
  const actors::SimulationSettings settings_;
  const std::uint64_t seed_;
  const OnNewWeights on_new_weights_;
  std::optional<actors::Lengths> prompts_;
  std::optional<actors::Lengths> responses_;
  std::optional<actors::ToolCalls> tools_;
  std::optional<EngineCost> cost_;
  std::vector<Instance> instances_;  ///< That which decodes, and the prefill instance, if any.
  double staged_bytes_ = 0;          ///< Per device, as the next.
  double version_bytes_ = 0;
  Duration swap_{}, swap_beside_{};
  std::int64_t most_parked_ = 0;  ///< Tokens that fit in host memory.

  // Mutable state.
  std::optional<Batch> batch_;
  std::optional<PrefillInstance> prefill_;  ///< With disaggregated prefill.
  PolicyVersion version_;
  bool has_weights_ = false;
  bool has_kv_ = false;
  std::deque<Control> inbox_;
  OpenCalls calls_;
  Time now_{};
  std::optional<Time> next_message_;  ///< No message is sent before it; as of the last advance().
  Operation operation_ = Operation::None;
  Time began_{};
  Time ends_{};
  std::int64_t run_steps_ = 0;  ///< Steps of the decode run.
  std::int64_t run_context_ = 0;
  std::int64_t undrafted_steps_ = 0;  ///< Of the finished ones, those with a pass without drafts.
  std::vector<EngineCost::Decode> run_cost_;  ///< A pass for each version.
  PolicyVersion committing_;
  HeldMemory switch_before_;
  std::optional<Time> staging_until_;
  PolicyVersion staging_;
  std::optional<PolicyVersion> staged_;
  bool beside_ = false;  ///< On time-shared cards, weights are staged beside those in use.
  std::shared_ptr<actors::Publications> publications_;
  std::vector<Batch::FinishedResponse> ended_;
  HeldTensors tensors_;
  std::optional<Time> report_due_;
  std::vector<actors::Span> spans_;
  Time reported_until_{};  ///< Of the current activity.
  Counters counters_;
  actors::UsageMeter meter_;
};

}  // namespace temper::rollout
