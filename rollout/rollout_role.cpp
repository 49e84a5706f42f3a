#include "rollout/rollout_role.hpp"

#include "actors/roles/switch_report.hpp"
#include "actors/shared_memory/shared_buffer.hpp"

#include <chrono>

namespace temper::rollout {
Status RolloutRole::on_message(const actors::IncomingMessage& message, actors::Outbox& out) {
  return actors::dispatch(
             message,
             [&](actors::Generate work) { generate(std::move(work)); },
             [&](const actors::Cancel& work) { cancel(work); },
             [&](const actors::Withdraw& work) { send(engine_->withdraw(work.responses), out); },
             [&](const actors::StageWeights& work) { stage(work.weights, out); },
             [&](const actors::WeightsChunk& work) { add_chunk(work, out); },
             [&](const actors::CommitWeights& work) { commit(work, out); },
             [&](const actors::Switch& work) { switch_role(work, out); })
      .value_or(Status());
}

Result<actors::Role::Work> RolloutRole::work(actors::Outbox& out) {
  report_staged(out);
  if (engine_->load() > 0) {
    const Time begin = activity_.now();
    TEMPER_TRY(StepResult step, engine_->step());
    if (step.kind == StepKind::Prefill)
      activity_.add(actors::CardState::Prefill, begin);
    if (step.kind == StepKind::Decode)
      activity_.add(actors::CardState::Decode, begin);
    if (step.kind == StepKind::Tools)
      activity_.add(actors::CardState::WaitTools, begin);
    send(std::move(step.finished), out);
  }
  activity_.report(out);
  return engine_->load() > 0 || staging_.valid() ? Work::Pending : Work::None;
}

Status RolloutRole::stop(actors::Outbox& out) {
  if (staging_.valid())
    staging_.wait();
  activity_.flush(out);
  return {};
}

/// The engine keeps its state and weights.
bool RolloutRole::rejoin(const actors::Welcome&) {
  if (staging_.valid())
    static_cast<void>(staging_.get());
  chunks_.reset();
  leases_.clear();
  activity_.forget();
  return engine_->reset_for_resume();
}

void RolloutRole::generate(actors::Generate work) {
  for (auto& item : work.items) {
    leases_[item.response] = work.lease;
    engine_->add({item.response, work.prompt, std::move(item.prefix), {}, {}, work.greedy});
  }
}

void RolloutRole::cancel(const actors::Cancel& work) {
  engine_->cancel(work.responses);
  for (const ResponseId r : work.responses)
    leases_.erase(r);
}

void RolloutRole::send(std::vector<Generation> generations, actors::Outbox& out) {
  actors::Generated message;
  for (Generation& g : generations) {
    const auto lease = leases_.find(g.id);
    if (lease == leases_.end())
      continue;
    message.items.push_back({lease->second,
                             g.id,
                             std::move(g.tokens),
                             std::move(g.logprobs),
                             std::move(g.segments),
                             g.finish,
                             std::move(g.mask),
                             std::move(g.rewards),
                             std::move(g.failure)});
    leases_.erase(lease);
  }
  if (!message.items.empty())
    out.send(message);
}

// --- Weights

void RolloutRole::stage(const actors::WeightsHandle& handle, actors::Outbox& out) {
  chunks_.reset();
  if (handle.fd >= 0 || !handle.path.empty()) {
    return stage_in_background(handle.version, [this, handle]() -> Status {
      TEMPER_TRY(const auto image, actors::MappedBuffer::open(handle));
      return engine_->stage(handle.version, image.bytes());
    });
  }
  auto assembler = actors::ChunkAssembler::start(handle, actors::kLargestImage);
  if (!assembler) {
    out.send(actors::WeightsStaged{handle.version, assembler.error().context});
    return;
  }
  staging_version_ = handle.version;
  chunks_ = *std::move(assembler);
}

void RolloutRole::add_chunk(const actors::WeightsChunk& chunk, actors::Outbox& out) {
  if (!chunks_ || chunk.version != staging_version_)
    return;  // Of an announcement that was replaced.
  if (const Status status = chunks_->add(chunk); !status) {
    chunks_.reset();
    out.send(actors::WeightsStaged{chunk.version, status.error().context});
    return;
  }
  if (!chunks_->complete())
    return;
  auto image = std::move(*chunks_).take();
  chunks_.reset();
  if (!image) {
    out.send(actors::WeightsStaged{chunk.version, image.error().context});
    return;
  }
  stage_in_background(chunk.version, [this, version = chunk.version, image = *std::move(image)] {
    return engine_->stage(version, image);
  });
}

/// Loading and verifying an image takes time; generation continues meanwhile.
void RolloutRole::stage_in_background(PolicyVersion version, std::function<Status()> load) {
  if (staging_.valid())
    staging_.wait();
  staging_version_ = version;
  staging_ = std::async(std::launch::async, std::move(load));
}

void RolloutRole::report_staged(actors::Outbox& out) {
  // With nothing to generate, waiting a moment for the image costs nothing.
  const auto patience = std::chrono::milliseconds(engine_->load() > 0 ? 0 : 10);
  if (!staging_.valid() || staging_.wait_for(patience) != std::future_status::ready)
    return;
  out.send(actors::WeightsStaged{staging_version_, actors::error_text(staging_.get())});
}

void RolloutRole::commit(const actors::CommitWeights& work, actors::Outbox& out) {
  const Time begin = activity_.now();
  const Status status = engine_->commit(work.version);
  activity_.add(actors::CardState::WeightSync, begin);
  out.send(actors::WeightsCommitted{work.version, actors::error_text(status)});
}

// --- Role switch

void RolloutRole::switch_role(const actors::Switch& work, actors::Outbox& out) {
  const auto held = [this] {
    const EngineMemory m = engine_->memory();
    return actors::HeldMemory{m.weights + m.kv, m.host};
  };
  actors::perform_switch(
      work.action, activity_, out, held, [&] { return perform(work.action, out); });
}

Status RolloutRole::perform(actors::SwitchAction action, actors::Outbox& out) {
  using A = actors::SwitchAction;
  switch (action) {
    case A::Interrupt:
      send(engine_->interrupt(), out);
      return {};
    case A::FreeKv:
      return engine_->free_kv();
    case A::FreeWeights:
      return engine_->free_weights();
    case A::AllocateKv:
      return engine_->allocate_kv();
    case A::OffloadOptimizer:
    case A::OnloadOptimizer:
    case A::OffloadReference:
    case A::OnloadReference:
      break;
  }
  return invalid_input("a rollout actor does not support the action " +
                       std::string(name_of(action)));
}

}  // namespace temper::rollout
