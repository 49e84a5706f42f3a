// Tensors of responses as files in shared memory: an engine writes a file, and the trainer maps it.
#pragma once

#include "core/temporary_folder.hpp"
#include "orchestrator/run/tensor_store.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>

namespace temper::orchestrator {

/// Owns a folder of files. It disappears with the store; create() removes the folders of this user
/// whose process was killed.
class ShmTensors final : public TensorStore {
 public:
  /// A new folder in `parent`, which only this user can enter. Engines wait for space as long as
  /// `wait`. Error Io: it cannot be created.
  static Result<std::unique_ptr<ShmTensors>> create(
      Duration wait, const std::filesystem::path& parent = "/dev/shm");

  /// Where engines write.
  const std::filesystem::path& folder() const { return folder_; }

  actors::TensorPlace place() const override;
  std::vector<bool> find(std::span<const actors::Tensor> tensors) override;
  void take(std::vector<actors::Tensor>& tensors) override;
  void refuse(std::span<const actors::Tensor> tensors) override;
  void remove(std::span<const actors::Tensor> tensors) override;
  void keep_only(std::span<const actors::Tensor> tensors) override;
  /// Reads them, and compares their checksums.
  bool has(std::span<const actors::Tensor> tensors) override;

 private:
  ShmTensors(TemporaryFolder owned, Duration wait);
  bool accepts(const std::string& name) const override { return is_name_of_engine(name); }
  bool is_own(const actors::Tensor& t) const;

  TemporaryFolder owned_;
  std::filesystem::path folder_;  ///< In it.
  Duration wait_;
  std::uint64_t next_ = 1;
};

}  // namespace temper::orchestrator
