// What the updates of a run were made of, as the auditor found it: a few bytes per group, so that
// the audit of a million updates fits into a small memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace temper::orchestrator {

/// One update as the log tells it.
struct AuditedBatch {
  struct Group {
    std::uint64_t id = 0;
    std::uint64_t dispatched = 0;                 ///< v0
    std::uint64_t age_from = 0;                   ///< Its age is counted from this version.
    std::optional<std::uint64_t> oldest, newest;  ///< Versions that sampled what was trained.
    bool operator==(const Group&) const = default;
  };
  std::uint64_t step = 0;
  std::optional<std::uint64_t> bound;  ///< That held then; none: the policy has none.
  std::vector<Group> groups;           ///< By id.
  bool operator==(const AuditedBatch&) const = default;
};

class AuditedBatches {
 public:
  /// Requires: steps are added in order.
  void add(const AuditedBatch& batch);
  std::size_t size() const { return begins_.size(); }
  /// Requires: at < size().
  AuditedBatch at(std::size_t at) const;
  /// The place of the update of this version.
  std::optional<std::size_t> find(std::uint64_t step) const;
  /// A resume makes them void.
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
