// The model and the layout of a simulated reference, which may be a teacher of another shape than
// the policy.
#pragma once

#include "core/describe.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace temper::actors {

struct ReferenceEngineConfig {
  std::string model;  ///< Name or path of a model description; empty: the policy's.
  std::optional<std::int64_t> tp{}, pp{}, ep{}, cp{};  ///< Empty: from the trainer's layout.

  bool operator==(const ReferenceEngineConfig&) const = default;
};
void describe(auto& v, ReferenceEngineConfig& c) {
  v.field(1,
          "model",
          c.model,
          {.doc = "Model of the reference, from configs/models or a path, for instance a larger "
                  "teacher. Empty: `simulation.model`."});
  v.field(
      2,
      "tp",
      c.tp,
      {.doc = "Tensor parallelism, in devices. Null, here and in the next keys: that of "
              "`simulation.trainer`, reduced to what divides the reference's devices and model.",
       .min = 1});
  v.field(3, "pp", c.pp, {.doc = "Pipeline stages.", .min = 1});
  v.field(4, "ep", c.ep, {.doc = "Expert parallelism, in devices.", .min = 1});
  v.field(5, "cp", c.cp, {.doc = "Context parallelism, in devices.", .min = 1});
}

}  // namespace temper::actors
