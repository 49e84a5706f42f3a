#include "rollout/simulated/prefill_instance.hpp"

#include "actors/simulation/role_layouts.hpp"
#include "actors/simulation/role_memory.hpp"

#include <algorithm>

namespace temper::rollout {

PrefillInstance::PrefillInstance(const actors::SimulationSettings& engine)
    : cost_(actors::prefill_instance(engine)),
      fabric_(sim_hw::make_fabric(engine.cluster)),
      tp_(engine.config.rollout.tp),
      devices_(engine.config.rollout.prefill_cards * engine.cluster.dies_per_card),
      distance_(engine.cards * engine.cluster.dies_per_card - devices_),
      links_(std::min(cost_.replicas(), distance_ / tp_ / engine.response_weight)),
      prefill_tokens_(engine.config.rollout.prefill_tokens),
      replica_cache_(actors::kv_tokens(actors::prefill_instance(engine)).count()) {}

void PrefillInstance::charge(const Transfer& transfer, BatchCost& cost) const {
  if (transfer.tokens == 0)
    return;
  const std::int64_t each = std::max(transfer.longest, (transfer.tokens + links_ - 1) / links_);
  const double bytes = cost_.kv_token_bytes();
  cost.seconds += sim_hw::p2p_seconds(fabric_, distance_, static_cast<double>(each) * bytes);
  const double sent = static_cast<double>(transfer.tokens * tp_) * bytes;
  cost.use.sent.add(sim_hw::p2p_traffic(fabric_, distance_, sent));
}

PrefillInstance::BatchCost PrefillInstance::cost(const std::deque<PrefillPiece>& pieces) const {
  BatchCost out;
  std::deque<PrefillPiece> left;
  Transfer fetched, sent;
  for (const PrefillPiece& piece : pieces) {
    if (piece.copied())
      continue;
    left.push_back(piece);
    fetched.add(piece.cached);
    sent.add(piece.tokens);
  }
  charge(fetched, out);
  charge(sent, out);
  out.cached = static_cast<double>(fetched.tokens + sent.tokens) * cost_.kv_token_bytes() /
               static_cast<double>(cost_.replicas());
  for (; !left.empty(); ++out.steps) {
    out.seconds += cost_.prefill(left, 0);
    const EngineCost::PrefillUse use = cost_.prefill_use(left);
    out.use.flops += use.flops;
    out.use.sent.add(use.sent);
    cost_.finish_prefill(left);
  }
  return out;
}

void PrefillInstance::begin(const std::deque<PrefillPiece>& pieces, Time now, Duration least) {
  batch_ = cost(pieces);
  began_ = now;
  ends_ = now + std::max(least, from_seconds(batch_.seconds));
}

const PrefillInstance::BatchCost& PrefillInstance::finish() {
  ends_.reset();
  done_ = true;
  return batch_;
}

}  // namespace temper::rollout
