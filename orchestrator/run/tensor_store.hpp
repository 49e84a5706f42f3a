// Where the bytes of tensors are that engines attach to responses. An engine writes them, the
// trainer reads them, and the orchestrator moves only their description. A store is a cache: a
// response whose tensors are gone is generated again (event::TensorsLost, event::Resumed::lost).
//
// To add a store, implement this interface for the orchestrator, and the class Store of
// python/src/temper/stores.py for engines and trainers. A store needs names that an engine chooses,
// a write that is visible as a whole, a check of existence without reading, and removal. It need
// not be reliable: the reader verifies a checksum.
#pragma once

#include "actors/protocol/role_config.hpp"
#include "actors/protocol/sample.hpp"
#include "core/result.hpp"

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace temper::orchestrator {

/// Removes everything that it took when it ends. One thread.
class TensorStore {
 public:
  TensorStore() = default;
  TensorStore(const TensorStore&) = delete;
  TensorStore& operator=(const TensorStore&) = delete;
  virtual ~TensorStore() = default;

  /// What engines and the trainer need to reach it.
  virtual actors::TensorPlace place() const = 0;

  /// Checks how an engine describes the tensors of one response, without looking for them. Error
  /// InvalidInput: a name, type, shape or size that is not possible, or a tensor that is among
  /// `named`, those of the responses before it in the message, to which it adds its own.
  Status check(std::span<const actors::Tensor> tensors, std::set<std::string>& named) const;

  /// Whether each of them is there, whole; in the order of `tensors`. Does not read their bytes.
  /// True for all if the store does not answer: then their reader waits for it.
  virtual std::vector<bool> find(std::span<const actors::Tensor> tensors) = 0;
  /// They now belong to the store, under names for the trainer. Requires: check().
  virtual void take(std::vector<actors::Tensor>& tensors) = 0;
  /// Removes tensors that an engine named and the store did not take.
  virtual void refuse(std::span<const actors::Tensor> tensors) = 0;
  /// Removes tensors that were taken.
  virtual void remove(std::span<const actors::Tensor> tensors) = 0;
  /// Removes all other tensors. Requires: no engine runs.
  virtual void keep_only(std::span<const actors::Tensor> tensors) = 0;
  /// They were taken and are all there. May read them: a reader has found some of them damaged.
  virtual bool has(std::span<const actors::Tensor> tensors) = 0;
  /// Extends the leases of all tensors that were taken. Call it often; it does so when it is time.
  virtual void refresh(Time /*now*/) {}

 private:
  /// A name that an engine may give to a tensor that it writes now.
  virtual bool accepts(const std::string& name) const = 0;
};

/// 1 to `longest` letters, digits, dots, underscores and hyphens.
bool is_word(std::string_view text, std::size_t longest);
/// What an engine may name its tensors in a store. Names with a dot in front are the store's own.
bool is_name_of_engine(std::string_view name);

}  // namespace temper::orchestrator
