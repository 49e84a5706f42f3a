#include "trainer/trainer_role.hpp"

#include "actors/roles/switch_report.hpp"
#include "actors/shared_memory/chunks.hpp"
#include "trainer/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace temper::trainer {
namespace {

/// TrainSample::ages of a step from `version`.
std::vector<std::int32_t> token_ages(const actors::Train::Item& item, PolicyVersion version) {
  const auto age_of = [&](PolicyVersion sampler) {
    return sampler < version ? static_cast<std::int32_t>(version.value() - sampler.value()) : 0;
  };
  std::vector<std::int32_t> ages;
  ages.reserve(item.response.size());
  for (const actors::Segment& segment : item.segments) {
    const auto left = static_cast<std::int64_t>(item.response.size() - ages.size());
    const std::int64_t tokens = std::clamp<std::int64_t>(segment.tokens.count(), 0, left);
    ages.insert(ages.end(), static_cast<std::size_t>(tokens), age_of(segment.version));
  }
  ages.resize(item.response.size(), age_of(item.first_version));
  return ages;
}

std::vector<TrainSample> samples_of(std::vector<actors::Train::Item> items, PolicyVersion version) {
  std::vector<TrainSample> samples;
  samples.reserve(items.size());
  for (auto& item : items) {
    std::vector<std::int32_t> ages = token_ages(item, version);
    samples.push_back({item.group,
                       std::move(item.prompt),
                       std::move(item.response),
                       std::move(item.logprobs),
                       std::move(item.reference),
                       item.reward,
                       std::move(item.mask),
                       item.id,
                       std::move(ages),
                       std::move(item.rewards),
                       std::move(item.top).value_or(actors::TopTokens())});
  }
  return samples;
}

}  // namespace

Status check_certificate(const actors::Train& work, PolicyVersion version) {
  const actors::Certificate& c = work.certificate;
  if (c.step != version) {
    return invalid_input(
        fmt::format("the batch is for a step from version {}, but the trainer has version {}",
                    c.step,
                    version));
  }
  struct CertificateEntry {
    PolicyVersion dispatched;
    bool seen = false;  // In the batch.
  };
  std::map<GroupId, CertificateEntry> groups;
  for (const auto& entry : c.groups) {
    if (entry.age_from() > c.step || c.step.value() - entry.age_from().value() > c.bound) {
      return invalid_input(
          fmt::format("group {} was dispatched with version {}; at version {} it "
                      "exceeds the staleness bound {}",
                      entry.group,
                      entry.age_from(),
                      c.step,
                      c.bound));
    }
    if (!groups.try_emplace(entry.group, CertificateEntry{entry.dispatched}).second)
      return invalid_input(fmt::format("group {} is in the certificate twice", entry.group));
  }
  for (const auto& item : work.items) {
    const auto it = groups.find(item.group);
    if (it == groups.end()) {
      return invalid_input(fmt::format("group {} is not in the certificate", item.group));
    }
    it->second.seen = true;
    if (item.response.empty()) {
      return invalid_input(
          fmt::format("response {} of group {} has no tokens", item.id, item.group));
    }
    if (item.first_version > c.step) {
      return invalid_input(fmt::format(
          "a response of group {} began with version {}, newer than version {} of this step",
          item.group,
          item.first_version,
          c.step));
    }
    if (item.first_version < it->second.dispatched) {
      return invalid_input(
          fmt::format("a response of group {} began with version {}, older than "
                      "version {} in its certificate",
                      item.group,
                      item.first_version,
                      it->second.dispatched));
    }
  }
  for (const auto& [group, certified] : groups) {
    if (!certified.seen)
      return invalid_input(
          fmt::format("group {} is in the certificate, but not in the batch", group));
  }
  return {};
}

Status TrainerRole::start(actors::Outbox& out) {
  return publish([](const actors::WeightsHandle& h) { return actors::TrainerReady{h}; }, out);
}

Status TrainerRole::on_message(const actors::IncomingMessage& message, actors::Outbox& out) {
  return actors::dispatch(
             message,
             [&](actors::Train work) { return train(std::move(work), out); },
             [&](actors::Prepare work) { return prepare(std::move(work), out); },
             [&](const actors::SaveState& work) { save(work, out); },
             [&](const actors::Switch& work) { switch_role(work, out); })
      .value_or(Status());
}

Result<actors::Role::Work> TrainerRole::work(actors::Outbox& out) {
  activity_.report(out);
  return Work::None;
}

Status TrainerRole::stop(actors::Outbox& out) {
  activity_.flush(out);
  return {};
}

Status TrainerRole::train(actors::Train work, actors::Outbox& out) {
  const Time begin = activity_.now();
  if (Status status = check_certificate(work, version_); !status) {
    return std::move(status).error().within("certificate rejected");
  }
  TEMPER_TRY(const UpdateMetrics metrics,
             engine_->update(samples_of(std::move(work.items), version_)));
  activity_.add(actors::CardState::Train, begin);
  version_ = next(version_);
  const Time exporting = activity_.now();
  actors::Trained trained{work.lease, {}, metrics, {}};
  for (const auto& entry : work.certificate.groups)
    trained.groups.push_back(entry.group);
  Status status = publish(
      [&](const actors::WeightsHandle& h) {
        trained.weights = h;
        return trained;
      },
      out);
  activity_.add(actors::CardState::WeightSync, exporting);
  return status;
}

/// The certificate of the step, not of these gradients, decides whether the groups may be trained.
Status TrainerRole::prepare(actors::Prepare work, actors::Outbox& out) {
  const Time begin = activity_.now();
  if (work.step != version_) {
    return invalid_input(
        fmt::format("gradients from version {} are requested, but the trainer has version {}",
                    work.step,
                    version_));
  }
  TEMPER_TRY_STATUS(engine_->prepare(samples_of(std::move(work.items), version_)));
  activity_.add(actors::CardState::Train, begin);
  out.send(actors::Prepared{work.lease});
  return {};
}

template <class Announcement>
Status TrainerRole::publish(Announcement announcement, actors::Outbox& out) {
  if (publication_ == Publication::SharedMemory) {
    if (published_.size() == kPublishedKept)
      published_.pop_front();
    TEMPER_TRY(auto writer, actors::SharedBuffer::Writer::create(version_));
    TEMPER_TRY_STATUS(engine_->publish([&](auto part) { return writer.append(part); }));
    TEMPER_TRY(auto buffer, std::move(writer).finish());
    published_.push_back(std::move(buffer));
    out.send(announcement(published_.back().handle()));
    return {};
  }
  TEMPER_TRY(const std::string image, engine_->weights());
  const auto bytes = std::as_bytes(std::span(image));
  out.send(announcement(actors::chunked_handle(version_, bytes)));
  return actors::for_each_chunk(version_, bytes, [&](const actors::WeightsChunk& chunk) -> Status {
    out.send(chunk);
    return {};
  });
}

void TrainerRole::save(const actors::SaveState& work, actors::Outbox& out) {
  const Time begin = activity_.now();
  std::string error;
  if (work.version != version_) {
    error = fmt::format(
        "asked to save version {}, but the trainer has version {}", work.version, version_);
  } else {
    error = actors::error_text(engine_->save(work.folder));
  }
  activity_.add(actors::CardState::WeightSync, begin);
  out.send(actors::StateSaved{work.version, error});
}

void TrainerRole::switch_role(const actors::Switch& work, actors::Outbox& out) {
  const auto held = [this] {
    const TrainerMemory m = engine_->memory();
    return actors::HeldMemory{m.weights + m.gradients + m.optimizer, m.host};
  };
  actors::perform_switch(work.action, activity_, out, held, [&]() -> Status {
    switch (work.action) {
      case actors::SwitchAction::OffloadOptimizer:
        return engine_->offload();
      case actors::SwitchAction::OnloadOptimizer:
        return engine_->onload();
      default:
        return invalid_input("a trainer does not support the action " +
                             std::string(name_of(work.action)));
    }
  });
}

}  // namespace temper::trainer
