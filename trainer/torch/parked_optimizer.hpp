// The optimizer while it is offloaded: in host memory that belongs to no process.
#pragma once

#include "actors/policy/adamw.hpp"
#include "actors/policy/parked_floats.hpp"

namespace temper::trainer {

class ParkedOptimizer {
 public:
  /// Copies the optimizer; the caller then releases the original. Error: no host memory.
  static Result<ParkedOptimizer> copy_of(const actors::AdamWState& state) {
    TEMPER_TRY(auto first, actors::ParkedFloats::copy_of(state.first_moment));
    TEMPER_TRY(auto second, actors::ParkedFloats::copy_of(state.second_moment));
    return ParkedOptimizer(std::move(first), std::move(second), state.steps);
  }
  Result<actors::AdamWState> read() const {
    TEMPER_TRY(auto first, first_moment_.read());
    TEMPER_TRY(auto second, second_moment_.read());
    return actors::AdamWState(std::move(first), std::move(second), steps_);
  }
  Bytes bytes() const { return first_moment_.bytes() + second_moment_.bytes(); }

 private:
  ParkedOptimizer(actors::ParkedFloats first, actors::ParkedFloats second, std::int64_t steps)
      : first_moment_(std::move(first)), second_moment_(std::move(second)), steps_(steps) {}

  actors::ParkedFloats first_moment_, second_moment_;
  std::int64_t steps_;
};

}  // namespace temper::trainer
