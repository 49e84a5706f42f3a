// The `algorithm.learning_rate_schedule` section: the learning rate of each step of a run.
#pragma once

#include "core/describe.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

namespace temper {
namespace trainer {

enum class Decay { None, Linear, Cosine };

struct LearningRateSchedule {
  std::int64_t warm_up_steps = 0;
  Decay decay = Decay::None;
  std::optional<std::int64_t> decay_steps;  ///< Null: `steps` of the run.
  double end = 0;

  bool operator==(const LearningRateSchedule&) const = default;
};

/// The learning rate of the step after `updates` ones, divided by `algorithm.learning_rate`: from
/// 1 / warm_up_steps to 1 in the warm-up, then down to `end` after `decay_steps`, which must be set
/// if there is a decay. The warm-up follows the first `untrained` steps, in which other weights are
/// trained.
double share_at(const LearningRateSchedule& schedule,
                std::uint64_t updates,
                std::int64_t untrained = 0);

void describe(auto& v, LearningRateSchedule& c) {
  v.field(1,
          "warm_up_steps",
          c.warm_up_steps,
          {.doc = "Number of first steps in which the learning rate rises in equal parts.",
           .min = 0,
           .max = 1 << 20});
  v.field(2,
          "decay",
          c.decay,
          {.doc = "How it falls after them: not at all, along a line, or along half a cosine."});
  v.field(3,
          "decay_steps",
          c.decay_steps,
          {.doc = "Number of steps of the run after which it is `end`. Null: `steps`."});
  v.field(4,
          "end",
          c.end,
          {.doc = "Learning rate after the decay, as a share of `algorithm.learning_rate`.",
           .min = 0.0,
           .max = 1.0});
}

}  // namespace trainer

template <>
struct EnumNames<trainer::Decay> {
  using D = trainer::Decay;
  static constexpr std::array<std::pair<D, std::string_view>, 3> value{
      {{D::None, "none"}, {D::Linear, "linear"}, {D::Cosine, "cosine"}}};
};

}  // namespace temper
