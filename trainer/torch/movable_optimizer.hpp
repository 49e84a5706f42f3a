// The optimizer while it is offloaded: in host memory that belongs to no process.
#pragma once

#include "actors/policy/adamw.hpp"
#include "actors/policy/parked_floats.hpp"

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

}  // namespace temper::trainer
