// Tensors that engines attach to responses, as files in shared memory: an engine writes a file, the
// trainer maps it, and the orchestrator moves only its description. The files are a cache: a
// response whose tensors are gone is generated again (event::Resumed::lost).
#pragma once

#include "actors/protocol/sample.hpp"
#include "core/result.hpp"
#include "core/temporary_folder.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace temper::orchestrator {

/// Owns a folder of files. It disappears with the store; create() removes the folders of this user
/// whose process was killed.
class TensorStore {
 public:
  /// A store that refuses every tensor.
  TensorStore() = default;
  /// A new folder in `parent`, which only this user can enter. Error Io: it cannot be created.
  static Result<TensorStore> create(const std::filesystem::path& parent = "/dev/shm");

  /// Where engines write; empty if the store refuses tensors.
  const std::filesystem::path& folder() const { return folder_; }

  /// Checks what an engine says about the tensors of one response. Error InvalidInput: a name,
  /// type, shape or size that is not possible, or a file that is not there, not of that size or
  /// among `named`, the files of the responses before it in the message, to which it adds its own.
  Status check(std::span<const actors::Tensor> tensors, std::set<std::string>& named) const;
  /// Makes the files the store's own and replaces their names by paths. Requires: check().
  void take(std::vector<actors::Tensor>& tensors);
  /// Removes the files of tensors that an engine named and the store did not take.
  void refuse(std::span<const actors::Tensor> tensors) const;
  /// Removes the files of tensors that were taken.
  void remove(std::span<const actors::Tensor> tensors) const;
  /// Removes the files of all other tensors. Requires: no engine runs.
  void keep_only(std::span<const actors::Tensor> tensors) const;
  /// All files are there, with the bytes that their engines described. Reads them.
  bool has(std::span<const actors::Tensor> tensors) const;

 private:
  bool is_own(const actors::Tensor& t) const;

  std::optional<TemporaryFolder> owned_;
  std::filesystem::path folder_;  ///< In it.
  std::uint64_t next_ = 1;
};

}  // namespace temper::orchestrator
