// Looks at every file of a run folder, and at the log and the checkpoints as a resume would, and
// says of each whether it is what was written. Changes nothing unless asked to. Then it turns back
// what is one flipped bit, and removes nothing: what is changed, cut off or set aside is kept as it
// was beside what it was cut from.
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
  Torn,       ///< Its last record was being written when the process ended; the rest is whole.
  Damaged,    ///< Not what was written.
  Missing,    ///< It must be there.
  Void,       ///< Whole, but of a history that events.log does not tell.
  Aside,      ///< Kept by an earlier repair or resume; nothing reads it.
  Unchecked,  ///< Text for people, or a file that is proved only once the run has ended.
};

struct CheckedFile {
  std::string name;  ///< Relative to the run folder.
  FileState state = FileState::Whole;
  std::string what;  ///< Of what is wrong: where, and how.
};

struct FsckReport {
  std::vector<CheckedFile> files;     ///< By name.
  std::vector<std::string> repaired;  ///< What was done, a line each.
  std::string next;                   ///< From where the run can go on, or why it cannot.
  bool resumable = false;
  /// No file is torn, damaged, missing or void.
  bool whole() const;
};

enum class Repair { No, Yes };

/// Error: it is no run folder, is in use (Repair::Yes), or cannot be read or repaired.
Result<FsckReport> check_run(const std::filesystem::path& run, Repair repair);

template <class V>
void describe(V& v, CheckedFile& f) {
  v.field(1, "name", f.name);
  v.field(2, "state", f.state);
  v.field(3, "what", f.what);
}
template <class V>
void describe(V& v, FsckReport& r) {
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
