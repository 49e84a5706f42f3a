#include "sim_hw/steps/step_cost.hpp"

namespace temper::sim_hw {

std::string_view op_name(Op op) {
  constexpr std::array<std::string_view, kOps> kNames{
      "qkv projection",  "query down",    "query up",
      "key-value down",  "key-value up",  "output projection",
      "gate-up",         "down",          "router",
      "shared experts",  "head",          "attention",
      "routed experts",  "elementwise",   "sampling",
      "log-softmax",     "head gradient", "optimizer",
      "tensor parallel", "dispatch",      "combine",
      "adapters",        "other"};
  return kNames[static_cast<std::size_t>(op)];
}

std::string_view pass_name(Pass pass) {
  switch (pass) {
    case Pass::Forward:
      return "forward";
    case Pass::Recompute:
      return "recompute";
    case Pass::Backward:
      return "backward";
  }
  return "?";
}

}  // namespace temper::sim_hw
