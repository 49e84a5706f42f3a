// The batches of a run as the auditor found them, in a few bytes per group, so that a million steps
// can be audited in little memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace temper::orchestrator {

/// The batch of one step, from the log.
struct AuditedBatch {
  struct Group {
    std::uint64_t id = 0;
    std::uint64_t dispatched = 0;                 ///< v0
    std::uint64_t age_from = 0;                   ///< Version from which its age counts.
    std::optional<std::uint64_t> oldest, newest;  ///< Versions that sampled the trained tokens.
    bool operator==(const Group&) const = default;
  };
  std::uint64_t step = 0;
  std::optional<std::uint64_t> bound;  ///< Bound of that step; nullopt: the rule has none.
  std::vector<Group> groups;           ///< Sorted by id.
  bool operator==(const AuditedBatch&) const = default;
};

class AuditedBatches {
 public:
  /// Requires: steps are added in order.
  void add(const AuditedBatch& batch);
  std::size_t size() const { return begins_.size(); }
  /// Requires: at < size().
  AuditedBatch at(std::size_t at) const;
  /// The index of the batch of this step.
  std::optional<std::size_t> find(std::uint64_t step) const;
  /// Drops the batches after this step, which a resume made void.
  void drop_from(std::uint64_t step);

 private:
  struct Begin {
    std::uint64_t step = 0;
    std::size_t byte = 0;  ///< In bytes_.
  };
  std::vector<Begin> begins_;
  std::string bytes_;
};

}  // namespace temper::orchestrator
