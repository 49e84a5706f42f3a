#include "rollout/simulated/engine_cost.hpp"

#include "actors/simulation/role_layouts.hpp"
#include "actors/simulation/role_memory.hpp"

#include <algorithm>
#include <limits>

namespace temper::rollout {
namespace {

/// Calls `use(piece, tokens)` with the tokens of each piece in the next step.
template <class Pieces, class Use>
void for_each_taken(Pieces& pieces, std::int64_t per_replica, std::int64_t replicas, Use&& use) {
  std::int64_t left = per_replica * replicas;
  for (auto& piece : pieces) {
    if (left == 0)
      break;
    const bool copied = piece.parked || piece.moved;
    const std::int64_t tokens = copied ? piece.tokens : std::min({piece.tokens, per_replica, left});
    left -= copied ? 0 : tokens;
    use(piece, tokens);
  }
}

}  // namespace

EngineCost::EngineCost(const actors::SimulationSettings& settings)
    : device_(sim_hw::make_device(settings.cluster, settings.config.rollout.formats())),
      fabric_(sim_hw::make_fabric(settings.cluster)),
      flops_(actors::served_model(settings), settings.adapter),
      layout_(actors::rollout_layout(settings)),
      replicas_(static_cast<std::int64_t>(layout_.dp) / settings.response_weight),
      devices_(static_cast<std::int64_t>(layout_.dp * layout_.tp)),
      prefill_tokens_(settings.config.rollout.prefill_tokens),
      host_overhead_(settings.config.rollout.tuned_host ? 0 : device_.k.host_untuned_step),
      drafts_(actors::engine_drafts(settings)),
      tokens_per_step_(
          sim_hw::accepted_tokens(settings.config.rollout.speculation.acceptance, drafts_.depth)),
      most_drafting_(settings.config.rollout.speculation.disable_by_batch_size.value_or(
          std::numeric_limits<std::int64_t>::max())),
      kv_token_bytes_(actors::kv_token_bytes(settings)),
      experts_(actors::engine_experts(settings)) {
  model_ = sim_hw::make_step_model(actors::served_model(settings),
                                   layout_.tp,
                                   layout_.ep,
                                   settings.adapter,
                                   layout_.redundant_experts);
  layout_.dp = layout_.ep / layout_.tp;
  set_imbalance(actors::typical(experts_, actors::kAnyGainPays).imbalance);
}

void EngineCost::use_version(PolicyVersion version) {
  set_imbalance(experts_.at(version, actors::kAnyGainPays).imbalance);
}

void EngineCost::set_imbalance(double imbalance) {
  if (imbalance == layout_.expert_imbalance)
    return;
  layout_.expert_imbalance = imbalance;
  per_batch_.clear();
}

EngineCost::PerBatch EngineCost::compute(std::int64_t batch, double expert_imbalance) const {
  constexpr double kShort = 1024;
  constexpr double kLong = 9216;
  const auto b = static_cast<double>(batch);
  sim_hw::RolloutLayout layout = layout_;
  layout.expert_imbalance = expert_imbalance;
  PerBatch out;
  out.drafted = drafts(batch);
  const double tokens = out.drafted ? tokens_per_step_ : 1;
  const auto seconds = [&](double context) {
    const sim_hw::ReplicaShape shape{b, b, context, out.drafted ? drafts_.queries() : 1};
    const auto drafting = out.drafted ? sim_hw::draft_seconds : sim_hw::follow_seconds;
    return sim_hw::parallel_decode_seconds(device_, fabric_, model_, layout, shape) +
           drafting(device_, fabric_, model_, layout, drafts_, shape);
  };
  const double at_short = seconds(kShort);
  out.per_context = (seconds(kLong) - at_short) / (kLong - kShort);
  out.fixed = (at_short - out.per_context * kShort + host_overhead_) / tokens;
  out.per_context /= tokens;
  const auto traffic = out.drafted ? sim_hw::drafted_traffic : sim_hw::followed_traffic;
  out.sent.add(traffic(fabric_, model_, layout, drafts_, b), 1 / tokens);
  out.known = true;
  return out;
}

const EngineCost::PerBatch& EngineCost::per_batch(std::int64_t batch) {
  const auto at = static_cast<std::size_t>(batch);
  if (at >= per_batch_.size())
    per_batch_.resize(at + 1);
  PerBatch& kept = per_batch_[at];
  if (!kept.known)
    kept = compute(batch, layout_.expert_imbalance);
  return kept;
}

EngineCost::Decode EngineCost::decode(const VersionLoad& load) {
  const PerBatch& kept = per_batch((load.running + replicas_ - 1) / replicas_);
  const auto all = static_cast<double>(load.running);
  return {kept.fixed, kept.per_context / all, all, load.context, kept.sent, kept.drafted};
}

double EngineCost::decode_flops(std::int64_t running,
                                std::int64_t steps,
                                std::int64_t context) const {
  const auto r = static_cast<double>(running);
  const auto k = static_cast<double>(steps);
  const double tokens = k * r;
  return flops_.forward({tokens, k * static_cast<double>(context) + r * (k * (k + 1) / 2), tokens});
}

Duration EngineCost::least(std::int64_t steps, std::int64_t load) {
  if (steps <= 0 || load <= 0)
    return {};
  const auto most = static_cast<std::size_t>((load + replicas_ - 1) / replicas_);
  while (least_.size() < most) {
    const PerBatch next = compute(std::ssize(least_) + 1, 1);
    const double step = next.per_context >= 0 ? std::max(0.0, next.fixed) : 0.0;
    least_.push_back(least_.empty() ? step : std::min(least_.back(), step));
  }
  // Subtracts more than rounding can add, here and in the runs of these steps.
  const double ns = static_cast<double>(steps) * least_[most - 1] * 1e9 * (1 - 1e-9);
  return Duration(static_cast<std::int64_t>(ns));
}

/// The cost of one sequence, without the fixed cost of a kernel.
double EngineCost::attention(double tokens) const {
  return sim_hw::attention_prefill_seconds(device_, model_.attention, 1, tokens) -
         device_.k.attention_latency;
}

/// Bytes of one sequence on the devices of its replica: to the host and back; from another engine,
/// through its host.
double EngineCost::copies(const PrefillPiece& piece, std::int64_t tokens) const {
  const double bytes = static_cast<double>(tokens) * kv_token_bytes_;
  const double moved = piece.moved ? sim_hw::p2p_seconds(fabric_, devices_, bytes) : 0;
  return moved + sim_hw::from_device_seconds(fabric_, bytes) +
         sim_hw::to_device_seconds(fabric_, bytes);
}

bool EngineCost::copying_pays(const PrefillPiece& piece) const {
  double computed = 0;
  std::deque<PrefillPiece> pieces{{piece.tokens, piece.offset}};
  while (!pieces.empty()) {
    computed += prefill(pieces, 0);
    finish_prefill(pieces);
  }
  return copies(piece, piece.tokens) < computed;
}

double EngineCost::prefill(const std::deque<PrefillPiece>& pieces, std::int64_t decoding) const {
  std::int64_t tokens = 0;
  std::int64_t longest = 0;
  double scores = 0;
  double most_scores = 0;
  double copied = 0;
  double most_copied = 0;
  for_each_taken(pieces, prefill_tokens_, replicas_, [&](const PrefillPiece& p, std::int64_t n) {
    if (p.parked || p.moved) {
      copied += copies(p, n);
      most_copied = std::max(most_copied, copies(p, n));
      return;
    }
    tokens += n;
    longest = std::max(longest, n);
    const auto before = static_cast<double>(p.offset);
    const double seconds =
        attention(before + static_cast<double>(n)) - (p.offset > 0 ? attention(before) : 0);
    scores += seconds;
    most_scores = std::max(most_scores, seconds);
  });
  const double copying = std::max(most_copied, copied / static_cast<double>(replicas_));
  if (tokens == 0)
    return copying;
  const double share = share_of(tokens, longest);
  const double attended =
      device_.k.attention_latency + std::max(most_scores, scores / static_cast<double>(replicas_));
  const double extra = copying + model_.layers * attended;
  if (decoding == 0)
    return extra + pass(share) + host_overhead_;
  const double responses = share_of(decoding, 0);
  const bool drafted = drafts(static_cast<std::int64_t>(responses));
  const double decoded = responses * (drafted ? drafts_.queries() : 1);
  return extra + pass(decoded + share) - pass(decoded);
}

double EngineCost::pass(double tokens) const {
  sim_hw::SumSink sum;
  visit_layers(device_,
               model_,
               {tokens, tokens * layout_.dp * layout_.expert_imbalance, model_.experts, false},
               sim_hw::Pass::Forward,
               sum);
  visit_rollout_exchanges(fabric_, model_, layout_, tokens, sum);
  return sum.seconds;
}

double EngineCost::share_of(std::int64_t tokens, std::int64_t longest) const {
  return static_cast<double>(std::max(longest, (tokens + replicas_ - 1) / replicas_));
}

EngineCost::PrefillUse EngineCost::prefill_use(const std::deque<PrefillPiece>& pieces) const {
  PrefillUse out;
  std::int64_t tokens = 0;
  std::int64_t longest = 0;
  for_each_taken(pieces, prefill_tokens_, replicas_, [&](const PrefillPiece& p, std::int64_t n) {
    const auto each = static_cast<double>(n);
    if (p.parked) {
      out.copied += each * kv_token_bytes_ * model_.tp;
      return;
    }
    if (p.moved) {
      out.copied += each * kv_token_bytes_ * model_.tp;
      out.sent.add(sim_hw::p2p_traffic(fabric_, devices_, each * kv_token_bytes_), model_.tp);
      return;
    }
    tokens += n;
    longest = std::max(longest, n);
    if (!p.repeated)
      out.flops += flops_.forward(sim_hw::continued(static_cast<double>(p.offset), each));
  });
  if (tokens > 0) {
    out.sent.add(sim_hw::rollout_traffic(fabric_, model_, layout_, share_of(tokens, longest)),
                 model_.tp * static_cast<double>(replicas_));
  }
  return out;
}

void EngineCost::finish_prefill(std::deque<PrefillPiece>& pieces) const {
  std::size_t taken = 0;
  for_each_taken(pieces, prefill_tokens_, replicas_, [&](PrefillPiece& piece, std::int64_t n) {
    piece.tokens -= n;
    piece.offset += n;
    ++taken;
  });
  const auto end = pieces.begin() + static_cast<std::ptrdiff_t>(taken);
  pieces.erase(
      std::remove_if(pieces.begin(), end, [](const PrefillPiece& p) { return p.tokens == 0; }),
      end);
}

}  // namespace temper::rollout
