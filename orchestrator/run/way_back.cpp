#include "orchestrator/run/way_back.hpp"

#include "core/msgpack.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace temper::orchestrator {
namespace {

/// Empty: the log tells of this checkpoint.
std::string not_of(const History& history, const CheckpointMark& mark) {
  const auto it = history.find(mark.sequence);
  if (it != history.end() && it->second == mark.log)
    return {};
  if (it != history.end())
    return fmt::format("record {} of events.log is another one than when it was saved",
                       mark.sequence);
  return fmt::format("events.log does not tell of it: it was saved at record {}", mark.sequence);
}

Error no_way(const Checkpoints& checkpoints, const std::vector<PassedOver>& passed_over) {
  std::string all;
  for (const PassedOver& p : passed_over)
    all += fmt::format("\n  {}: {}", p.folder.filename().string(), p.reason);
  return corrupt(fmt::format(
      "none of the checkpoints in {} can be gone back to:{}\nNothing was changed. `temper fsck {} "
      "--repair` sets them aside and says from where the run can go on",
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
  if (const auto* started = std::get_if<event::Started>(&record.event))
    config_ = started->config;
  if (const auto* resumed = std::get_if<event::Resumed>(&record.event)) {
    history_.erase(history_.upper_bound(resumed->sequence), history_.end());
    if (resumed->config)
      config_ = resumed->config;
  }
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

Result<WayBack> find_way_back(const Checkpoints& checkpoints, const History& history) {
  WayBack way;
  for (const FoundCheckpoint& found : checkpoints.find()) {
    const auto pass = [&](Checkpoints::Why why, std::string reason) {
      way.passed_over.push_back({found.folder, why, std::move(reason)});
    };
    if (!found.mark) {
      pass(Checkpoints::Why::Damaged, found.damage);
      continue;
    }
    if (way.checkpoint)
      continue;
    if (std::string reason = not_of(history, *found.mark); !reason.empty()) {
      pass(Checkpoints::Why::Void, std::move(reason));
      continue;
    }
    auto checkpoint = Checkpoints::load(found);
    if (checkpoint)
      way.checkpoint = *std::move(checkpoint);
    else
      pass(Checkpoints::Why::Damaged, checkpoint.error().context);
  }
  if (!way.checkpoint && !way.passed_over.empty())
    return no_way(checkpoints, way.passed_over);
  return way;
}

Result<std::vector<std::string>> clear_way(const Checkpoints& checkpoints, const WayBack& way) {
  std::vector<std::string> said;
  for (const PassedOver& p : way.passed_over) {
    TEMPER_TRY(const std::filesystem::path aside, checkpoints.set_aside(p.folder, p.why));
    said.push_back(fmt::format("checkpoint {} is passed over and kept as {}: {}",
                               p.folder.filename().string(),
                               aside.filename().string(),
                               p.reason));
  }
  return said;
}

}  // namespace temper::orchestrator
