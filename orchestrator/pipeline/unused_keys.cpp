#include "orchestrator/pipeline/unused_keys.hpp"

#include <fmt/format.h>

namespace temper::orchestrator {
namespace {

using actors::ExpertConfig;
using actors::ExpertLoadKind;
using actors::LengthConfig;
using actors::LengthKind;

/// The keys of one section.
class Section {
 public:
  /// `reason`: the key that decides what the section uses.
  Section(std::string key, std::string reason, Rules& rules)
      : key_(std::move(key)), reason_(std::move(reason)), rules_(rules) {}

  template <class T>
  void only_with(
      const std::string& setting, bool set, const char* name, const T& value, const T& unset) {
    require(set || value == unset,
            name,
            fmt::format("used only with {0}; remove it, or set {0}", setting));
  }
  template <class T>
  void only_without(
      const std::string& setting, bool set, const char* name, const T& value, const T& unset) {
    require(!set || value == unset,
            name,
            fmt::format("used only without {0}; remove it, or remove {0}", setting));
  }

 private:
  void require(bool holds, const char* name, std::string message) {
    rules_.require(holds, {key_ + "." + name, reason_, key_}, std::move(message));
  }

  std::string key_, reason_;
  Rules& rules_;
};

void check_faults(const actors::FaultConfig& c, Rules& rules) {
  const actors::FaultConfig unset;
  const std::string key = "simulation.faults";
  Section keys(key, key + ".trace", rules);
  const bool trace = !c.trace.empty();
  keys.only_without("`trace`", trace, "rate", c.rate, unset.rate);
  keys.only_without("`trace`", trace, "card_mtbf", c.card_mtbf, unset.card_mtbf);
  keys.only_without("`trace`", trace, "host_mtbf", c.host_mtbf, unset.host_mtbf);
  keys.only_without("`trace`", trace, "link_mtbf", c.link_mtbf, unset.link_mtbf);
  keys.only_without("`trace`", trace, "supernode_mtbf", c.supernode_mtbf, unset.supernode_mtbf);
  keys.only_without("`trace`", trace, "seed", c.seed, unset.seed);
}

void check_experts(const std::string& key, const ExpertConfig& c, Rules& rules) {
  const ExpertConfig unset;
  Section loads(key, key + ".loads", rules);
  const bool drifting = c.loads == ExpertLoadKind::Drifting;
  const bool zipf = c.loads == ExpertLoadKind::Zipf;
  const bool trace = c.loads == ExpertLoadKind::Trace;
  const bool varies = c.sequence_spread > 0;
  loads.only_with("`loads: trace`", trace, "trace", c.trace, unset.trace);
  loads.only_with("`loads: drifting`", drifting, "spread", c.spread, unset.spread);
  loads.only_with("`loads: zipf`", zipf, "exponent", c.exponent, unset.exponent);
  loads.only_with(
      "`loads: drifting` or `loads: zipf`", drifting || zipf, "drift", c.drift, unset.drift);
  loads.only_with("`loads: drifting`, `loads: zipf` or `sequence_spread`",
                  drifting || zipf || varies,
                  "seed",
                  c.seed,
                  unset.seed);
  Section placed(key, key + ".placement", rules);
  const bool predicted = c.placement == actors::ExpertPlacing::Predicted;
  placed.only_with("`placement: predicted`", predicted, "memory", c.memory, unset.memory);
  placed.only_with("`placement: predicted`", predicted, "horizon", c.horizon, unset.horizon);
  Section exchanges(key, key + ".sequence_spread", rules);
  exchanges.only_with(
      "`sequence_spread`", varies, "loss_strength", c.loss_strength, unset.loss_strength);
}

}  // namespace

void check_unused_keys(const std::string& key,
                       const LengthConfig& c,
                       const LengthConfig& unset,
                       Rules& rules) {
  Section keys(key, key + ".kind", rules);
  const bool drawn = c.kind == LengthKind::Lognormal || c.kind == LengthKind::Constant;
  const bool histogram = c.kind == LengthKind::Histogram;
  keys.only_with("`kind: trace`", c.kind == LengthKind::Trace, "trace", c.trace, unset.trace);
  keys.only_with("`kind: histogram`", histogram, "weights", c.weights, unset.weights);
  keys.only_with("`kind: histogram`", histogram, "width", c.width, unset.width);
  keys.only_with("`kind: lognormal` or `kind: constant`", drawn, "mean", c.mean, unset.mean);
  // Constant lengths are those of a sweep over the kind, without the spread.
  keys.only_with(
      "`kind: lognormal`", drawn, "p99_over_median", c.p99_over_median, unset.p99_over_median);
  keys.only_with("`kind: lognormal`",
                 drawn,
                 "sibling_correlation",
                 c.sibling_correlation,
                 unset.sibling_correlation);
}

void check_unused_keys(const std::string& key, const actors::LatencyConfig& c, Rules& rules) {
  const actors::LatencyConfig unset;
  Section keys(key, key + ".trace", rules);
  const bool trace = !c.trace.empty();
  keys.only_without("`trace`", trace, "mean", c.mean, unset.mean);
  keys.only_without("`trace`", trace, "p99_over_median", c.p99_over_median, unset.p99_over_median);
  keys.only_without("`trace`", trace, "cap", c.cap, unset.cap);
}

void check_unused_keys(const actors::SimulationConfig& c, Rules& rules) {
  check_faults(c.faults, rules);
  const std::string experts = "simulation.experts", own = "simulation.trainer.experts";
  check_experts(experts, c.experts, rules);
  if (!c.trainer.experts)
    return;
  check_experts(own, *c.trainer.experts, rules);
  // Only the trainer has exchanges.
  Section keys(experts, own, rules);
  keys.only_without("`" + own + "`",
                    true,
                    "sequence_spread",
                    c.experts.sequence_spread,
                    ExpertConfig().sequence_spread);
}

void check_unused_keys(const PayloadsSection& c, Rules& rules) {
  const PayloadsSection unset;
  Section keys("payloads", "payloads.store", rules);
  const bool redis = c.store == TensorStoreKind::Redis;
  keys.only_with("`store: redis`", redis, "redis", c.redis, unset.redis);
  keys.only_with("`store: redis`", redis, "redis_ca", c.redis_ca, unset.redis_ca);
}

}  // namespace temper::orchestrator
