// Which checkpoint a run goes back to: the newest that is whole and of this history. Nothing is
// changed until it has been read whole. The steps are
//   1. find_way_back()  reads; changes nothing; an error where no checkpoint can be used but some
//                       are there, so that a run never begins anew unasked
//   2. clear_way()      renames what is passed over, so that it never counts again
#pragma once

#include "orchestrator/record/event_log.hpp"
#include "orchestrator/run/checkpoints.hpp"

#include <set>
#include <string>
#include <vector>

namespace temper::orchestrator {

/// A checkpoint that cannot be gone back to.
struct PassedOver {
  std::filesystem::path folder;
  Checkpoints::Why why = Checkpoints::Why::Void;
  std::string reason;
};

struct WayBack {
  std::optional<Checkpoint> checkpoint;  ///< None: there is none, the run begins at its start.
  std::vector<PassedOver> passed_over;   ///< Newer than it, or damaged.
};

/// Finds in a log the records that checkpoints were saved at.
class HistoryReader {
 public:
  explicit HistoryReader(const Checkpoints& checkpoints);
  /// To be called for every record, in order.
  void feed(const Record& record, const LogPosition& behind);
  const History& history() const { return history_; }
  /// After the last update that the log tells of.
  PolicyVersion version() const { return version_; }
  /// What the run was decided by last; none: the log has no start.
  const std::optional<SchedulerConfig>& config() const { return config_; }
  /// That the run goes on from the record `sequence`, under `config`, with what was set anew.
  event::Resumed resumed(std::uint64_t sequence,
                         const SchedulerConfig& config,
                         std::vector<SettingChange> changes) const;

 private:
  std::set<std::uint64_t> sought_;
  History history_;
  PolicyVersion version_;
  std::optional<SchedulerConfig> config_;
};

Result<WayBack> find_way_back(const Checkpoints& checkpoints, const History& history);

/// Sets aside what was passed over. The result says so, a line for each, for people.
Result<std::vector<std::string>> clear_way(const Checkpoints& checkpoints, const WayBack& way);

}  // namespace temper::orchestrator
