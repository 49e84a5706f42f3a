// The imbalance of the routed experts of a role, policy version by policy version
// (simulation.experts): loads that depend on the version alone, and experts that stay in order or
// migrate (sim_hw/parallel/expert_balance.hpp).
//
// A role sees the loads of a version when it runs that version, and predicts from earlier ones.
//   trainer    experts migrate between two steps, with their weights and their shards of the
//              optimizer states, in all replicas at once; a migration has to pay within `horizon`
//              steps and its time is part of the step
//   engine     receives whole weights with each version, so a new placement costs nothing more;
//              redundant experts are copies of the first ones in version 0, and with experts that
//              stay, all are placed once after it, by its loads
//   reference  its weights never change, so neither do its loads, which are those of version 0
// The trainer's loads may be others (simulation.trainer.experts), and a capacity factor drops
// copies of its tokens (sim_hw/parallel/expert_capacity.hpp); migration then balances what experts
// process. Its ranks route full micro-batches. With sequence_spread, the loads of the trainer's
// exchanges vary around those of the version, by the scope of its load-balance loss
// (sim_hw/parallel/balance_loss.hpp). Engines mix the tokens of hundreds of responses, and the
// exchanges of a reference are not modeled. Assumed: the loads of a version are the same in
// training, generation and scoring unless configured apart; layers are independent. Of drifting and
// Zipf loads kLayers layers are drawn, and figures are their means; a trace is one layer.
// Constants: none. One owner, no threads.
#pragma once

#include "actors/simulation/simulation_config.hpp"
#include "sim_hw/layout/layout.hpp"
#include "sim_hw/parallel/balance_loss.hpp"
#include "sim_hw/parallel/expert_balance.hpp"
#include "sim_hw/parallel/expert_capacity.hpp"

#include <deque>
#include <optional>
#include <vector>

namespace temper::actors {

/// Loads of a role's experts.
struct RoleLoads {
  ExpertConfig config;
  std::vector<double> trace{};  ///< Of `loads: trace`: rows of one load per expert.
};
RoleLoads loads_of(const SimulatedRun& run, RoleKind role);

/// What happens to the experts of a role.
struct ExpertTreatment {
  double expert_seconds = 0;  ///< For a device to receive one expert.
  sim_hw::ExchangeShape exchange{};
  std::optional<sim_hw::ExpertCapacity> capacity{};
};

class ExpertImbalance {
 public:
  /// Balanced.
  ExpertImbalance() = default;
  /// Balanced if the loads are, exchanges do not vary and no copies are dropped; if the model has
  /// no experts; or if one device has them all and none are dropped.
  ExpertImbalance(const sim_hw::ModelSpec& model,
                  const RoleLoads& loads,
                  const sim_hw::ExpertGroup& group,
                  const ExpertTreatment& treatment = {});

  /// Whether loads differ, or copies are dropped.
  bool any() const { return !layers_.empty(); }
  /// Means over the layers. `balanced_seconds`: of a layer's experts and their exchange in a step,
  /// at balance; those of the versions in between that this object has not seen are taken to be the
  /// same. A version always gives the same figures.
  const sim_hw::MigrationOutcome& at(PolicyVersion version, double balanced_seconds);

 private:
  sim_hw::ExpertLoads next_loads(std::size_t layer);
  sim_hw::MigrationOutcome next(std::size_t layer);
  /// Replaces the figures of a step by those of its exchanges.
  void vary(sim_hw::MigrationOutcome& step, std::size_t layer, const sim_hw::ExpertLoads& routed);

  static constexpr std::size_t kLayers = 16;
  std::vector<sim_hw::LoadWalk> walks_;  ///< Per layer; empty: a trace.
  std::vector<sim_hw::ExpertMigration> layers_;
  std::vector<double> trace_;  ///< Rows of loads.
  std::size_t experts_ = 0;
  sim_hw::ExchangeShape exchange_;
  std::optional<sim_hw::ExpertCapacity> capacity_;
  std::vector<Random> exchanges_;  ///< Per layer; not used if exchanges do not vary.
  std::vector<Random> replicas_;   ///< The same; not used without a capacity.
  sim_hw::MigrationRule rule_;
  bool migrates_ = false;
  bool placed_once_ = false;  ///< After the first version, although experts do not migrate.
  std::deque<sim_hw::MigrationOutcome> steps_;  ///< By version. References stay valid.
};

/// `balanced_seconds` of an engine, which gets whole weights with each version: any better
/// placement is taken.
inline constexpr double kAnyGainPays = 1;
/// Versions over which a figure that belongs to no version is averaged.
inline constexpr std::int64_t kTypicalVersions = 10;
/// Mean over the first versions.
sim_hw::MigrationOutcome typical(ExpertImbalance experts, double balanced_seconds);

/// The trainer's exchanges under the scope of its load-balance loss: sequences of mean length in
/// micro-batches of the configured size.
sim_hw::ExchangeShape trainer_exchange(const SimulatedRun& run, const sim_hw::Layout& layout);
/// Experts of the trainer. Requires: check_trainer() succeeds.
ExpertImbalance trainer_experts(const SimulatedRun& run, const sim_hw::Layout& layout);
/// Experts of an engine. Requires: check_rollout() succeeds.
ExpertImbalance engine_experts(const SimulationSettings& engine);
/// Imbalance of a reference's experts: placed by its loads if experts migrate at all.
double reference_imbalance(const SimulatedRun& run, const sim_hw::Layout& layout);
/// The largest imbalance of the trainer in its first versions, for which memory is planned.
double largest_imbalance(const SimulatedRun& run, const sim_hw::Layout& layout);

}  // namespace temper::actors
