#include "orchestrator/record/replay.hpp"

#include "core/json.hpp"
#include "core/msgpack.hpp"
#include "orchestrator/scheduler/scheduler.hpp"

#include <fmt/format.h>

namespace temper::orchestrator {
namespace {

std::string show(const Commands& commands, std::size_t i) {
  return i < commands.size() ? to_json(commands[i]) : std::string("nothing");
}

}  // namespace

Replay::Replay() : scheduler_(std::make_unique<Scheduler>()) {}
Replay::~Replay() = default;

Status Replay::feed(const Record& record) {
  if (const auto* started = std::get_if<event::Started>(&record.event)) {
    config_ = *started->config;
    *scheduler_ = Scheduler();
    snapshots_[record.sequence] = "";
  }
  if (const auto* resumed = std::get_if<event::Resumed>(&record.event)) {
    const auto it = snapshots_.find(resumed->sequence);
    if (it == snapshots_.end()) {
      return corrupt(
          fmt::format("resumes from record {}, which is not a checkpoint", resumed->sequence));
    }
    if (resumed->config)
      config_ = **resumed->config;
    TEMPER_TRY(*scheduler_, Scheduler::restored(config_, it->second));
  }
  if (const auto* scaled = std::get_if<event::Scaled>(&record.event))
    config_.actors = scaled->actors;
  const Commands commands = scheduler_->on(record.event, record.time);
  if (std::holds_alternative<event::CheckpointSaved>(record.event)) {
    snapshots_[record.sequence] = scheduler_->snapshot();
    if (snapshots_.size() > kMostWaysBack + 1)
      snapshots_.erase(std::next(snapshots_.begin()));
  }
  for (std::size_t i = 0; i < std::max(commands.size(), record.commands.size()); ++i) {
    if (i < commands.size() && i < record.commands.size() &&
        encode(commands[i]) == encode(record.commands[i])) {
      continue;
    }
    return corrupt(fmt::format("command {} differs\n  recorded: {}\n  replayed: {}",
                               i,
                               show(record.commands, i),
                               show(commands, i)));
  }
  ++events_;
  commands_ += commands.size();
  return {};
}

}  // namespace temper::orchestrator
