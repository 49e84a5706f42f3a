// Names of the linear layers of simulated models.
#pragma once

#include <string>
#include <vector>

namespace temper::test {

using Targets = std::vector<std::string>;

inline const Targets kPlainTargets{
    "q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"};
/// With latent attention.
inline const Targets kLatentTargets{"q_a_proj",
                                    "q_b_proj",
                                    "kv_a_proj_with_mqa",
                                    "kv_b_proj",
                                    "o_proj",
                                    "gate_proj",
                                    "up_proj",
                                    "down_proj"};

}  // namespace temper::test
