// The state of an optimizer, which can be offloaded to host memory that belongs to no process.
#pragma once

#include "actors/policy/adamw.hpp"
#include "actors/policy/parked_floats.hpp"

#include <optional>
#include <utility>

namespace temper::trainer {

class ParkedOptimizer {
 public:
  /// Holds the optimizer, whose moments the caller then releases. Error: no host memory.
  static Result<ParkedOptimizer> park(const actors::AdamWState& state) {
    TEMPER_TRY(auto first, actors::ParkedFloats::park(state.first_moment));
    TEMPER_TRY(auto second, actors::ParkedFloats::park(state.second_moment));
    return ParkedOptimizer(std::move(first), std::move(second), state.steps);
  }
  /// The same moments, mapped into the process again. Error Io: no address space.
  Result<actors::AdamWState> map() const {
    TEMPER_TRY(auto first, first_moment_.map());
    TEMPER_TRY(auto second, second_moment_.map());
    return actors::AdamWState(std::move(first), std::move(second), steps_);
  }
  Bytes bytes() const { return first_moment_.bytes() + second_moment_.bytes(); }

 private:
  ParkedOptimizer(actors::ParkedFloats first, actors::ParkedFloats second, std::int64_t steps)
      : first_moment_(std::move(first)), second_moment_(std::move(second)), steps_(steps) {}

  actors::ParkedFloats first_moment_, second_moment_;
  std::int64_t steps_;
};

/// An optimizer that is in the process, or offloaded.
class MovableOptimizer {
 public:
  /// Zero moments of `floats` trained floats.
  explicit MovableOptimizer(std::int64_t floats) : state_(floats) {}

  bool is_offloaded() const { return parked_.has_value(); }
  std::int64_t steps() const { return state_.steps; }
  /// Requires: it is not offloaded.
  actors::AdamWState& state() { return state_; }
  /// Calls `use(state)`, which returns a Status; an offloaded state is mapped meanwhile.
  template <class Use>
  Status view(Use&& use) const {
    if (!parked_)
      return use(state_);
    TEMPER_TRY(const actors::AdamWState state, parked_->map());
    return use(state);
  }

  /// No effect if it is offloaded. Error: no host memory.
  Status offload() {
    if (parked_)
      return {};
    TEMPER_TRY(parked_, ParkedOptimizer::park(state_));
    state_.first_moment.release();
    state_.second_moment.release();
    return {};
  }
  /// No effect unless it is offloaded. Error Io: no address space.
  Status onload() {
    if (!parked_)
      return {};
    TEMPER_TRY(state_, parked_->map());
    parked_.reset();
    return {};
  }

  Bytes bytes() const { return state_.first_moment.bytes() + state_.second_moment.bytes(); }
  Bytes offloaded_bytes() const { return parked_ ? parked_->bytes() : Bytes(0); }

 private:
  actors::AdamWState state_;
  std::optional<ParkedOptimizer> parked_;
};

}  // namespace temper::trainer
