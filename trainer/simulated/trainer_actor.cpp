#include "trainer/simulated/trainer_actor.hpp"

#include "actors/simulation/role_layouts.hpp"
#include "actors/simulation/role_memory.hpp"
#include "actors/simulation/tensor_fetch.hpp"
#include "actors/simulation/weight_moves.hpp"
#include "trainer/trainer_role.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace temper::trainer {
namespace {

double gib(double bytes) {
  return bytes / 1073741824.0;
}

}  // namespace

Status check_certificate(const actors::CountedTrain& work, PolicyVersion version) {
  // The real trainer's check, with one token per response: it uses nothing else.
  actors::Train batch;
  batch.certificate = work.certificate;
  for (const auto& item : work.items) {
    if (item.response <= Tokens(0))
      return invalid_input(fmt::format("a response of group {} has no tokens", item.group));
    if (!batch.items.empty() && batch.items.back().group == item.group)
      continue;
    auto& response = batch.items.emplace_back();
    response.group = item.group;
    response.response.resize(1);  // Which token is irrelevant.
    response.first_version = work.certificate.step;
  }
  return check_certificate(batch, version);
}

SimulatedTrainer::SimulatedTrainer(actors::SimulationSettings settings, PolicyVersion version)
    : settings_(std::move(settings)),
      shared_{settings_.trainer_cards, settings_.cluster.dies_per_card},
      fabric_(sim_hw::make_fabric(settings_.cluster)),
      weight_bytes_(2 * actors::trained_parameters(settings_)),
      version_(version),
      spans_(settings_.config.report_every),
      meter_(settings_,
             settings_.trainer_cards,
             actors::outside_of(settings_, actors::RoleKind::Trainer)) {}

Status SimulatedTrainer::start(Time now, actors::Outbox& out) {
  TEMPER_TRY_STATUS(actors::check_trainer(settings_));
  memory_ = actors::trainer_memory(settings_);
  meter_.predict(memory_);
  meter_.add_from_host(actors::moved_bytes(memory_) * meter_.devices());
  update_.emplace(settings_);
  jobs_.emplace_back(Loading{});
  return begin_next(now, out);
}

Status SimulatedTrainer::on_message(const actors::IncomingMessage& message,
                                    Time now,
                                    actors::Outbox& out) {
  const auto taken = actors::dispatch(
      message,
      [&](actors::CountedTrain job) { jobs_.emplace_back(std::move(job)); },
      [&](actors::CountedPrepare job) { jobs_.emplace_back(std::move(job)); },
      [&](actors::SaveState job) { jobs_.emplace_back(std::move(job)); },
      [&](const actors::Switch& job) { jobs_.emplace_back(job); },
      [&](const actors::Stop&) { stop(now, out); });
  if (taken)
    TEMPER_TRY_STATUS(*taken);
  return begin_next(now, out);
}

void SimulatedTrainer::stop(Time now, actors::Outbox& out) {
  record(now);
  if (until_ && *until_ > began_ && now >= began_ && works())
    account(seconds(now - began_) / seconds(*until_ - began_));
  spans_.finish(now, out, meter_);
}

Status SimulatedTrainer::advance(Time now, actors::Outbox& out) {
  if (until_ && *until_ <= now) {
    finish(now, out);
    until_.reset();
    jobs_.pop_front();
  }
  return begin_next(now, out);
}

std::optional<Time> SimulatedTrainer::next_event() const {
  return until_;
}

Status SimulatedTrainer::begin_next(Time now, actors::Outbox& out) {
  while (!until_ && !jobs_.empty()) {
    TEMPER_TRY_STATUS(
        std::visit([&](const auto& job) { return begin(job, now, out); }, jobs_.front()));
    if (!until_)
      jobs_.pop_front();
  }
  return {};
}

Status SimulatedTrainer::begin(const Loading&, Time now, actors::Outbox&) {
  // Optimizer states in host memory are already there.
  until_ = now + from_seconds(actors::load_seconds(fabric_, memory_));
  if (version_ > PolicyVersion(0))
    *until_ += checkpoint_time();
  return {};
}

Status SimulatedTrainer::begin(const actors::CountedTrain& job, Time now, actors::Outbox&) {
  if (Status status = check_certificate(job, version_); !status)
    return std::move(status).error().within("certificate rejected");
  if (optimizer_ == Optimizer::Parked)
    return invalid_input("received a batch while the optimizer is offloaded");
  if (job.items.empty())
    return invalid_input("the batch has no responses");
  trained_ = {.lease = job.lease, .groups = {}, .metrics = {}, .weights = {}};
  trained_.groups.reserve(job.certificate.groups.size());
  for (const auto& entry : job.certificate.groups)
    trained_.groups.push_back(entry.group);
  std::vector<Tokens> lengths;
  actors::PayloadTokens new_here;
  lengths.reserve(job.items.size());
  double reward = 0;
  for (const auto& item : job.items) {
    const Tokens length = item.prompt + item.response;
    if (!prepared_.contains(item.group)) {
      lengths.push_back(length);
      new_here.add(item.prompt, item.response);
    }
    trained_.metrics.tokens += length;
    reward += item.reward;
  }
  if (lengths.empty())
    return invalid_input("every group of the batch is already prepared");
  prepared_.clear();
  trained_.metrics.reward_mean = reward / static_cast<double>(job.items.size());
  cost_ = (*update_)(std::move(lengths), version_);
  trained_.metrics.micro_batches = static_cast<std::int32_t>(cost_.micro_batches);
  if (settings_.config.trainer.capacity_factor)
    trained_.metrics.experts = {cost_.experts.dropped, cost_.experts.dropped_most};
  take(receive(new_here, now), from_seconds(cost_.total()));
  return {};
}

Status SimulatedTrainer::begin(const actors::CountedPrepare& job, Time now, actors::Outbox&) {
  if (job.step != version_) {
    return invalid_input(
        fmt::format("gradients from version {} are requested, but the trainer has version {}",
                    job.step,
                    version_));
  }
  if (optimizer_ == Optimizer::Parked)
    return invalid_input("gradients are requested while the weights are offloaded");
  if (job.items.empty())
    return invalid_input("no responses to prepare");
  std::vector<Tokens> lengths;
  actors::PayloadTokens new_here;
  lengths.reserve(job.items.size());
  for (const auto& item : job.items) {
    lengths.push_back(item.prompt + item.response);
    new_here.add(item.prompt, item.response);
    prepared_.insert(item.group);
  }
  cost_ = (*update_)(std::move(lengths), version_);
  cost_.data_parallel = cost_.optimizer = cost_.host_transfer = cost_.expert_migration = 0;
  cost_.swapped_optimizer = 0;
  take(receive(new_here, now), from_seconds(cost_.total()));
  return {};
}

Duration SimulatedTrainer::checkpoint_time() const {
  const actors::CheckpointCostConfig& cost = settings_.config.checkpoint;
  if (cost.bandwidth <= BytesPerSecond(0))
    return {};
  const auto parameters =
      static_cast<double>(actors::trained_parameters(settings_)) * (settings_.critic ? 2 : 1);
  return from_seconds(parameters * cost.bytes_per_parameter / cost.bandwidth.count());
}

Status SimulatedTrainer::begin(const actors::SaveState& job, Time now, actors::Outbox& out) {
  if (job.version != version_) {
    out.send(actors::StateSaved{
        job.version,
        fmt::format(
            "asked to save version {}, but the trainer has version {}", job.version, version_)});
  } else if (const Duration time = checkpoint_time(); time > Duration{}) {
    take(now, time);
  } else {
    out.send(actors::StateSaved{job.version, {}});
  }
  return {};
}

Status SimulatedTrainer::begin(const actors::Switch& job, Time now, actors::Outbox& out) {
  switched_ = {.action = job.action, .cost = {}, .error = {}};
  const HeldMemory before = held();
  actors::SwitchCost& cost = switched_.cost;
  cost.device_before = cost.device_after = before.device;
  cost.host_before = cost.host_after = before.host;
  cost.process_peak = cost.process_after = before.host;
  double comes = 0;
  if (job.action == actors::SwitchAction::OnloadOptimizer)
    comes = settle_on(job.cards);
  const Result<double> seconds = switch_seconds(job.action);
  if (!seconds) {
    switched_.error = seconds.error().context;
    out.send(switched_);
    return {};
  }
  optimizer_ =
      job.action == actors::SwitchAction::OffloadOptimizer ? Optimizer::Parked : Optimizer::Onboard;
  const HeldMemory after = held();
  cost.duration = from_seconds(*seconds + comes);
  cost.device_after = after.device;
  cost.host_after = cost.process_after = after.host;
  cost.process_peak = std::max(before.host, after.host);
  take(now, cost.duration);
  return {};
}

void SimulatedTrainer::finish(Time now, actors::Outbox& out) {
  if (std::holds_alternative<Loading>(jobs_.front())) {
    out.send(actors::TrainerReady{weights()});
    return;
  }
  if (const auto* saved = std::get_if<actors::SaveState>(&jobs_.front())) {
    out.send(actors::StateSaved{saved->version, {}});
    return;
  }
  record(now);
  note_usage();
  spans_.flush(now, out, &meter_);
  if (std::holds_alternative<actors::CountedTrain>(jobs_.front())) {
    version_ = next(version_);
    trained_.weights = weights();
    out.send(trained_);
  } else if (const auto* work = std::get_if<actors::CountedPrepare>(&jobs_.front())) {
    out.send(actors::CountedPrepared{work->lease});
  } else {
    out.send(switched_);
  }
}

Time SimulatedTrainer::receive(const actors::PayloadTokens& responses, Time now) {
  recorded_ = now;
  const actors::Crossing crossing = actors::to_trainer(settings_, responses);
  if (crossing.bytes > 0)
    meter_.add_crossing(crossing.bytes);
  return now + from_seconds(crossing.seconds) + fetch_tensors(responses);
}

Duration SimulatedTrainer::fetch_tensors(const actors::PayloadTokens& responses) {
  if (!settings_.config.tensors.any())
    return {};
  actors::TensorPlaces places = settings_.tensor_places;
  if (!cards_.empty())
    places.trainer = cards_;
  const actors::TensorFetch fetch =
      actors::fetch_tensors(fabric_, settings_, places, actors::tensor_bytes(settings_, responses));
  const Duration takes = from_seconds(fetch.seconds);
  meter_.add_sent(fetch.sent);
  meter_.add_from_host(fetch.bytes);
  meter_.tensors().fetched += Bytes(static_cast<std::int64_t>(fetch.bytes));
  meter_.tensors().fetching += takes;
  cost_.memory.host.tensors = fetch.bytes / devices();
  return takes;
}

void SimulatedTrainer::take(Time arrived, Duration duration) {
  if (!works())
    recorded_ = arrived;
  began_ = arrived;
  until_ = arrived + duration;
}

void SimulatedTrainer::record(Time now) {
  if (!until_ || std::holds_alternative<Loading>(jobs_.front()) ||
      std::holds_alternative<actors::SaveState>(jobs_.front()))
    return;
  if (recorded_ < began_)
    spans_.add(actors::CardState::WeightSync, recorded_, std::min(began_, now));
  spans_.add(works() ? actors::CardState::Train : actors::CardState::Switch,
             std::max(recorded_, began_),
             now);
  recorded_ = now;
}

/// Usage of the job that ends.
void SimulatedTrainer::note_usage() {
  if (works())
    return account(1);
  const double moved = this->moved() * devices();
  if (switched_.cost.duration > Duration{} &&
      switched_.action == actors::SwitchAction::OffloadOptimizer) {
    meter_.add_to_host(moved);
    meter_.predict({memory_.device, actors::parked(memory_, gradients())});
  } else if (switched_.cost.duration > Duration{}) {
    meter_.add_from_host(moved);
  }
  meter_.hold(0, static_cast<double>(held().host.count()) / devices());
}

void SimulatedTrainer::account(double share) {
  meter_.add_flops(share * cost_.flops);
  meter_.add_sent(cost_.sent, share);
  const double swapped = share * (cost_.swapped_optimizer + cost_.swapped_activations) * devices();
  meter_.add_from_host(swapped);
  meter_.add_to_host(swapped);
  meter_.hold(cost_.memory.device.total(), cost_.memory.host.total());
}

SimulatedTrainer::HeldMemory SimulatedTrainer::held() const {
  const auto bytes = [&](double per_device) {
    return actors::bytes_on(settings_, settings_.trainer_cards, per_device);
  };
  const sim_hw::Ledger& device = memory_.device;
  const sim_hw::Ledger& host = memory_.host;
  if (optimizer_ == Optimizer::Onboard)
    return {bytes(device.weights + device.gradients + device.optimizer), bytes(host.optimizer)};
  return {bytes(device.weights), bytes(actors::parked(memory_, gradients()).total())};
}

double SimulatedTrainer::moved() const {
  return actors::moved_bytes(memory_) + (prepared_.empty() ? 0 : memory_.device.gradients);
}

double SimulatedTrainer::settle_on(const std::vector<CardId>& cards) {
  if (cards.empty() || cards == cards_)
    return 0;
  const bool first = cards_.empty();
  const bool onboard = optimizer_ == Optimizer::Onboard;
  cards_ = cards;
  settings_.trainer_cards = std::ssize(cards);
  memory_ = actors::trainer_memory(settings_);
  meter_.predict(memory_);
  update_.emplace(settings_);
  if (first && onboard)
    return 0;  // It starts there.
  const double state = moved() + memory_.host.optimizer;
  meter_.add_from_host(state * devices());
  meter_.add_sent(actors::fabric_traffic(fabric_, shared_, state), devices());
  meter_.add_to_host(state * devices());
  double seconds = actors::offload_seconds(fabric_, settings_, state) +
                   actors::fabric_seconds(fabric_, settings_, shared_, state) +
                   actors::onload_seconds(fabric_, settings_, state);
  if (onboard) {                              // From cards that it keeps: to their hosts first.
    meter_.add_to_host(moved() * devices());  // note_usage() counts the way back.
    seconds += actors::offload_seconds(fabric_, settings_, moved()) +
               actors::onload_seconds(fabric_, settings_, moved());
  }
  return seconds;
}

Result<double> SimulatedTrainer::switch_seconds(actors::SwitchAction action) const {
  const double moved = this->moved();
  switch (action) {
    case actors::SwitchAction::OffloadOptimizer: {
      if (optimizer_ == Optimizer::Parked)
        return 0.0;
      const double needed = memory_.host.optimizer + moved;
      if (needed > actors::host_capacity(settings_)) {
        return Error{ErrorCode::OutOfMemory,
                     fmt::format("{:.2f} GiB of weights and optimizer per device exceed its {:.2f} "
                                 "GiB of host memory",
                                 gib(needed),
                                 gib(actors::host_capacity(settings_)))};
      }
      return actors::offload_seconds(fabric_, settings_, moved);
    }
    case actors::SwitchAction::OnloadOptimizer: {
      if (optimizer_ == Optimizer::Onboard)
        return 0.0;
      if (memory_.device.total() > actors::device_capacity(settings_)) {
        return Error{ErrorCode::OutOfMemory,
                     fmt::format("training needs {:.2f} GiB per device, found {:.2f} GiB",
                                 gib(memory_.device.total()),
                                 gib(actors::device_capacity(settings_)))};
      }
      return actors::onload_seconds(fabric_, settings_, moved);
    }
    default:
      return invalid_input("a trainer cannot " + std::string(name_of(action)));
  }
}

}  // namespace temper::trainer
