// Verifies every file of a run folder, and the log and the checkpoints as a resume does. Changes
// nothing unless asked to repair. A repair reverts single-bit errors and deletes nothing:
// everything that it changes, truncates or moves aside is kept beside the original.
#pragma once

#include "core/describe.hpp"
#include "core/result.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace temper::orchestrator {

enum class FileState {
  Whole,      ///< As it was written, by its hash.
  Torn,       ///< Its last record is incomplete, because the process ended; the rest is whole.
  Damaged,    ///< Differs from what was written.
  Missing,    ///< It must exist, but does not.
  Void,       ///< Whole, but of a history that is not in events.log.
  Aside,      ///< Kept by an earlier repair or resume; unused.
  Unchecked,  ///< Text for people, or a file that is certified only when the run has finished.
};

struct CheckedFile {
  std::string name;  ///< Relative to the run folder.
  FileState state = FileState::Whole;
  std::string what;  ///< Description of the problem.
};

struct FsckReport {
  std::vector<CheckedFile> files;     ///< Sorted by name.
  std::vector<std::string> repaired;  ///< Repairs that were made, one line each.
  std::string next;                   ///< From where the run can be resumed, or why it cannot.
  bool resumable = false;
  /// Whether no file is torn, damaged, missing or void.
  bool whole() const;
};

enum class Repair { No, Yes };

/// Error: not a run folder, in use (with Repair::Yes), or it cannot be read or repaired.
Result<FsckReport> check_run(const std::filesystem::path& run, Repair repair);

void describe(auto& v, CheckedFile& f) {
  v.field(1, "name", f.name);
  v.field(2, "state", f.state);
  v.field(3, "what", f.what);
}
void describe(auto& v, FsckReport& r) {
  v.field(1, "files", r.files);
  v.field(2, "repaired", r.repaired);
  v.field(3, "next", r.next);
  v.field(4, "resumable", r.resumable);
}

}  // namespace temper::orchestrator

namespace temper {
template <>
struct EnumNames<orchestrator::FileState> {
  using F = orchestrator::FileState;
  static constexpr std::array<std::pair<F, std::string_view>, 7> value{
      {{F::Whole, "whole"},
       {F::Torn, "torn"},
       {F::Damaged, "damaged"},
       {F::Missing, "missing"},
       {F::Void, "void"},
       {F::Aside, "aside"},
       {F::Unchecked, "unchecked"}}};
};
}  // namespace temper
