#include "actors/simulation/simulated_reference.hpp"

#include "actors/simulation/expert_imbalance.hpp"
#include "actors/simulation/role_clusters.hpp"
#include "actors/simulation/role_layouts.hpp"
#include "actors/simulation/role_memory.hpp"
#include "actors/simulation/weight_moves.hpp"
#include "sim_hw/iteration/cluster.hpp"
#include "sim_hw/layout/stages.hpp"
#include "sim_hw/parallel/train_traffic.hpp"

#include <algorithm>
#include <utility>

namespace temper::actors {

ReferenceModel::ReferenceModel(const SimulationSettings& settings)
    : settings_(settings),
      model_(served_model(settings)),
      flops_(model_),
      device_(sim_hw::make_device(settings.cluster)),
      fabric_(sim_hw::make_fabric(settings.cluster)),
      layout_(reference_layout(settings)),
      imbalance_(reference_imbalance(settings, layout_)) {}

PackingLimits ReferenceModel::limits() const {
  return {.tokens = settings_.config.trainer.micro_batch_tokens, .replicas = layout_.dp};
}

sim_hw::TrainShape ReferenceModel::shape(const Packing& packing) const {
  return packed_shape(settings_, layout_, packing.micro_batches, packing.mean_tokens());
}

double ReferenceModel::seconds(const Packing& packing) const {
  sim_hw::TrainShape shape = this->shape(packing);
  shape.expert_imbalance = imbalance_;
  const double seconds =
      sim_hw::forward_iteration_seconds(model_, device_, fabric_, layout_, shape);
  if (shape.attention != sim_hw::AttentionKernel::Fused)
    return seconds;
  const LayerAttention attention =
      layer_attention(model_, device_, layout_, shape, packing.mean_squares());
  const auto first = static_cast<double>(sim_hw::stage_layers(model_, layout_, 0));
  const double layers = static_cast<double>(packing.micro_batches) * first +
                        static_cast<double>(model_.layers) - first;
  return seconds + (attention.real - attention.packed) * layers;
}

ReferencePass ReferenceModel::pass(std::vector<Tokens> lengths) const {
  lengths = repeated(std::move(lengths), settings_.response_weight);
  ReferencePass out;
  for (const Tokens length : lengths)
    out.flops += flops_.forward(sim_hw::whole_sequence(static_cast<double>(length.count())));
  const Packing packing = pack(std::move(lengths), limits());
  out.sent = sim_hw::forward_traffic(model_, device_, fabric_, layout_, shape(packing)).total();
  out.memory = reference_memory(settings_, Tokens(packing.largest_tokens));
  out.seconds = seconds(packing);
  return out;
}

SimulatedReference::SimulatedReference(SimulationSettings settings)
    : settings_(std::move(settings)),
      fabric_(sim_hw::make_fabric(settings_.cluster)),
      spans_(settings_.config.report_every),
      meter_(settings_, settings_.cards, outside_of(settings_, RoleKind::Reference)) {}

Status SimulatedReference::start(Time now, Outbox&) {
  TEMPER_TRY_STATUS(check_reference(settings_));
  model_.emplace(settings_);
  memory_ = reference_memory(settings_);
  place_ = settings_.colocated ? Place::Host : Place::Card;
  predict();
  if (onboard())
    meter_.add_from_host(memory_.device.weights * devices());
  count_held();
  state_ = State::Loading;
  until_ = now + from_seconds(onboard() ? load_seconds(fabric_, memory_) : 0);
  return {};
}

Status SimulatedReference::on_message(const IncomingMessage& message, Time now, Outbox& out) {
  return dispatch(
             message,
             [&](CountedScore work) { return score(std::move(work), now); },
             [&](const Switch& work) { begin_switch(work, now, out); },
             [&](const Stop&) { stop(now, out); })
      .value_or(Status());
}

Status SimulatedReference::score(CountedScore work, Time now) {
  if (!onboard())
    return invalid_input("cannot score: the reference weights are in host memory");
  waiting_.push_back(std::move(work));
  if (state_ == State::Nothing)
    begin_pass(now);
  return {};
}

void SimulatedReference::stop(Time now, Outbox& out) {
  record(now);
  if (state_ == State::Scoring && *until_ > began_ && now >= began_)
    account(temper::seconds(now - began_) / temper::seconds(*until_ - began_));
  spans_.finish(now, out, meter_);
}

Status SimulatedReference::advance(Time now, Outbox& out) {
  if (until_ && *until_ <= now) {
    record(now);
    if (state_ == State::Scoring)
      account(1);
    spans_.report(now, out, &meter_);
    until_.reset();
    finish(now, out);
    if (!waiting_.empty())
      begin_pass(now);
  }
  spans_.report(now, out, &meter_);
  return {};
}

std::optional<Time> SimulatedReference::next_event() const {
  return earlier(until_, spans_.due());
}

void SimulatedReference::begin_pass(Time now) {
  std::vector<Tokens> lengths;
  for (const CountedScore& work : waiting_)
    lengths.insert(lengths.end(), work.lengths.begin(), work.lengths.end());
  under_way_ = waiting_.size();
  state_ = State::Scoring;
  PayloadTokens responses;
  for (const Tokens length : lengths)
    responses.add(Tokens(0), length);
  const Crossing crossing = to_reference(settings_, responses);
  if (crossing.bytes > 0)
    meter_.add_crossing(crossing.bytes);
  pass_ = lengths.empty() ? ReferencePass{} : model_->pass(std::move(lengths));
  recorded_ = now;
  began_ = now + from_seconds(crossing.seconds);
  until_ = began_ + from_seconds(pass_.seconds);
}

void SimulatedReference::account(double share) {
  meter_.add_flops(share * pass_.flops);
  meter_.add_sent(pass_.sent, share);
  meter_.hold(pass_.memory.device.total(), pass_.memory.host.total());
}

void SimulatedReference::predict() {
  ActorMemory predicted = memory_;
  if (settings_.colocated)  // Others have its cards in turn.
    predicted.host.weights = memory_.device.weights;
  meter_.predict(predicted);
}

/// Counts its weights, wherever they are.
void SimulatedReference::count_held() {
  const double weights = memory_.device.weights;
  meter_.hold(memory_.device.reserve + (onboard() ? weights : 0), onboard() ? 0 : weights);
}

void SimulatedReference::finish(Time, Outbox& out) {
  switch (std::exchange(state_, State::Nothing)) {
    case State::Nothing:
      break;
    case State::Loading:
      out.send(Ready{});
      break;
    case State::Scoring:
      for (; under_way_ > 0; --under_way_) {
        out.send(CountedScored{waiting_.front().lease});
        waiting_.pop_front();
      }
      break;
    case State::Switching:
      count_held();
      if (switched_.cost.duration > Duration{} && onboard())
        meter_.add_from_host(memory_.device.weights * devices());
      else if (switched_.cost.duration > Duration{})
        meter_.add_to_host(memory_.device.weights * devices());
      out.send(switched_);
      break;
  }
}

/// Moves the weights to the cards or to the host; an unsupported action is answered at once.
void SimulatedReference::begin_switch(const Switch& work, Time now, Outbox& out) {
  const SwitchAction action = work.action;
  switched_ = {.action = action, .cost = {}, .error = {}};
  const bool comes = action == SwitchAction::OnloadReference;
  if (!comes && action != SwitchAction::OffloadReference)
    switched_.error = "a reference actor does not support " + std::string(name_of(action));
  else if (state_ != State::Nothing)
    switched_.error = "cannot " + std::string(name_of(action)) + " while a pass is running";
  if (!switched_.error.empty()) {
    out.send(switched_);
    return;
  }
  const double moves = comes ? settle_on(work.cards) : 0;
  SwitchCost& cost = switched_.cost;
  cost.device_before = held(Place::Card);
  cost.host_before = held(Place::Host);
  if (comes != onboard()) {
    const double bytes = memory_.device.weights;
    cost.duration = from_seconds(moves + (comes ? onload_seconds(fabric_, settings_, bytes)
                                                : offload_seconds(fabric_, settings_, bytes)));
  }
  place_ = comes ? Place::Card : Place::Host;
  cost.device_after = held(Place::Card);
  cost.host_after = held(Place::Host);
  state_ = State::Switching;
  until_ = now + cost.duration;
  began_ = recorded_ = now;
}

/// Assumes that all weights move from the hosts of its previous cards, even those already in place.
double SimulatedReference::settle_on(const std::vector<CardId>& cards) {
  if (cards.empty() || cards == cards_)
    return 0;
  cards_ = cards;
  settings_.cards = std::ssize(cards);
  memory_ = reference_memory(settings_);
  predict();
  model_.emplace(settings_);
  const double bytes = memory_.device.weights;
  const SharedCards shared{settings_.trainer_cards, settings_.cluster.dies_per_card};
  meter_.add_from_host(bytes * devices());
  meter_.add_sent(fabric_traffic(fabric_, shared, bytes), devices());
  meter_.add_to_host(bytes * devices());
  return onload_seconds(fabric_, settings_, bytes) +
         fabric_seconds(fabric_, settings_, shared, bytes) +
         offload_seconds(fabric_, settings_, bytes);
}

Bytes SimulatedReference::held(Place where) const {
  return bytes_on(settings_, settings_.cards, where == place_ ? memory_.device.weights : 0);
}

void SimulatedReference::record(Time now) {
  if (!until_ || state_ == State::Loading)
    return;
  if (recorded_ < began_)
    spans_.add(CardState::WeightSync, recorded_, std::min(began_, now));
  spans_.add(state_ == State::Switching ? CardState::Switch : CardState::Reference,
             std::max(recorded_, began_),
             now);
  recorded_ = now;
}

}  // namespace temper::actors
