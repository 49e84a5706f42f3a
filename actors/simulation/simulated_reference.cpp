#include "actors/simulation/simulated_reference.hpp"

#include "sim_hw/iteration/cluster.hpp"

#include <utility>

namespace temper::actors {

ReferenceModel::ReferenceModel(const SimulationSettings& settings)
    : settings_(settings),
      model_(trained_model(settings)),
      device_(sim_hw::make_device(settings.cluster)),
      fabric_(sim_hw::make_fabric(settings.cluster)),
      layout_(reference_layout(settings)) {}

double ReferenceModel::seconds(std::vector<Tokens> lengths) const {
  const Packing packing =
      pack(std::move(lengths),
           {.tokens = settings_.config.trainer.micro_batch_tokens, .replicas = layout_.dp});
  const sim_hw::TrainShape shape =
      packed_shape(settings_, layout_, packing.micro_batches, packing.mean_tokens());
  const double pass = sim_hw::forward_iteration_seconds(model_, device_, fabric_, layout_, shape);
  if (shape.attention != sim_hw::AttentionKernel::Fused)
    return pass;
  const LayerAttention attention =
      layer_attention(model_, device_, layout_, shape, packing.mean_squares());
  const auto first = static_cast<double>(sim_hw::stage_layers(model_, layout_, 0));
  const double layers = static_cast<double>(packing.micro_batches) * first +
                        static_cast<double>(model_.layers) - first;
  return pass + (attention.real - attention.packed) * layers;
}

Tokens ReferenceModel::full() const {
  return Tokens(settings_.config.trainer.micro_batch_tokens) * (layout_.dp * layout_.pp);
}

SimulatedReference::SimulatedReference(SimulationSettings settings)
    : settings_(std::move(settings)), spans_(settings_.config.report_every) {}

Status SimulatedReference::start(Time now, Outbox&) {
  TEMPER_TRY_STATUS(check_reference(settings_));
  model_.emplace(settings_);
  const sim_hw::Fabric fabric = sim_hw::make_fabric(settings_.cluster);
  until_ = now + from_seconds(load_seconds(fabric, reference_memory(settings_)));
  return {};
}

Status SimulatedReference::on_message(const IncomingMessage& message, Time now, Outbox& out) {
  if (message.is<CountedScore>()) {
    TEMPER_TRY(auto work, message.decode<CountedScore>());
    waiting_.push_back(std::move(work));
    if (loaded_ && !until_)
      begin_pass(now);
  } else if (message.is<Stop>()) {
    record(now);
    spans_.flush(now, out);
  }
  return {};
}

Status SimulatedReference::advance(Time now, Outbox& out) {
  if (until_ && *until_ <= now) {
    record(now);
    spans_.report(now, out);
    until_.reset();
    if (!std::exchange(loaded_, true))
      out.send(Ready{});
    for (; under_way_ > 0; --under_way_) {
      out.send(CountedScored{waiting_.front().lease});
      waiting_.pop_front();
    }
    if (!waiting_.empty())
      begin_pass(now);
  }
  spans_.report(now, out);
  return {};
}

std::optional<Time> SimulatedReference::next_event() const {
  return earlier(until_, spans_.due());
}

void SimulatedReference::begin_pass(Time now) {
  const Tokens full = model_->full();
  std::vector<Tokens> lengths;
  Tokens sum;
  for (const CountedScore& work : waiting_) {
    Tokens tokens;
    for (const Tokens length : work.lengths)
      tokens += length;
    if (under_way_ > 0 && sum + tokens > full)
      break;
    sum += tokens;
    lengths.insert(lengths.end(), work.lengths.begin(), work.lengths.end());
    ++under_way_;
  }
  until_ = lengths.empty() ? now : now + from_seconds(model_->seconds(std::move(lengths)));
  recorded_ = now;
}

void SimulatedReference::record(Time now) {
  if (!loaded_ || !until_)
    return;
  spans_.add(CardState::Reference, recorded_, now);
  recorded_ = now;
}

}  // namespace temper::actors
