#include "orchestrator/run/rollback_point.hpp"

#include "core/msgpack.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace temper::orchestrator {
namespace {

/// Why the log does not have this checkpoint; empty: it has.
std::string mismatch_of(const History& history, const CheckpointMark& mark) {
  const auto it = history.find(mark.sequence);
  if (it != history.end() && it->second == mark.log)
    return {};
  if (it != history.end())
    return fmt::format("record {} of events.log has changed since it was saved", mark.sequence);
  return fmt::format("events.log does not have it: it was saved at record {}", mark.sequence);
}

Error no_rollback_point(const Checkpoints& checkpoints,
                        const std::vector<SkippedCheckpoint>& skipped) {
  std::string all;
  for (const SkippedCheckpoint& p : skipped)
    all += fmt::format("\n  {}: {}", p.folder.filename().string(), p.reason);
  return corrupt(fmt::format(
      "no checkpoint in {} is usable:{}\nNothing was changed. `temper fsck {} --repair` sets them "
      "aside and says from where the run can continue",
      checkpoints.folder().string(),
      all,
      checkpoints.folder().parent_path().string()));
}

}  // namespace

HistoryReader::HistoryReader(const Checkpoints& checkpoints) {
  for (const FoundCheckpoint& found : checkpoints.find()) {
    if (found.mark)
      sought_.insert(found.mark->sequence);
  }
}

void HistoryReader::feed(const Record& record, const LogPosition& behind) {
  if (const SchedulerConfig* config = config_in(record.event))
    config_ = *config;
  if (const auto* resumed = std::get_if<event::Resumed>(&record.event))
    history_.erase(history_.upper_bound(resumed->sequence), history_.end());
  if (const auto* scaled = std::get_if<event::Scaled>(&record.event); scaled && config_)
    config_->actors = scaled->actors;
  if (const auto* trained = std::get_if<event::Trained>(&record.event))
    version_ = trained->version;
  if (sought_.contains(record.sequence))
    history_[record.sequence] = behind;
}

event::Resumed HistoryReader::resumed(std::uint64_t sequence,
                                      const SchedulerConfig& config,
                                      std::vector<SettingChange> changes) const {
  event::Resumed event{sequence, 0};
  event.changes = std::move(changes);
  if (!config_ || encode(*config_) != encode(config))
    event.config = config;
  return event;
}

Result<RollbackPoint> find_rollback_point(const Checkpoints& checkpoints, const History& history) {
  RollbackPoint point;
  for (const FoundCheckpoint& found : checkpoints.find()) {
    const auto skip = [&](Checkpoints::Defect defect, std::string reason) {
      point.skipped.push_back({found.folder, defect, std::move(reason)});
    };
    if (!found.mark) {
      skip(Checkpoints::Defect::Damaged, found.damage);
      continue;
    }
    if (point.checkpoint)
      continue;
    if (std::string reason = mismatch_of(history, *found.mark); !reason.empty()) {
      skip(Checkpoints::Defect::Void, std::move(reason));
      continue;
    }
    auto checkpoint = Checkpoints::load(found);
    if (checkpoint)
      point.checkpoint = *std::move(checkpoint);
    else
      skip(Checkpoints::Defect::Damaged, checkpoint.error().context);
  }
  if (!point.checkpoint && !point.skipped.empty())
    return no_rollback_point(checkpoints, point.skipped);
  return point;
}

Result<std::vector<std::string>> set_aside_skipped(const Checkpoints& checkpoints,
                                                   const RollbackPoint& point) {
  std::vector<std::string> said;
  for (const SkippedCheckpoint& p : point.skipped) {
    TEMPER_TRY(const std::filesystem::path aside, checkpoints.set_aside(p.folder, p.defect));
    said.push_back(fmt::format("checkpoint {} is skipped and kept as {}: {}",
                               p.folder.filename().string(),
                               aside.filename().string(),
                               p.reason));
  }
  return said;
}

}  // namespace temper::orchestrator
