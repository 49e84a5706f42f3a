// What a trainer worker is told beside its role: RoleConfig::settings of a trainer.
#pragma once

#include "trainer/algorithm_config.hpp"

namespace temper::trainer {

/// Of a trainer's checkpoint, in C++ and in Python: either goes on from the other's. (1 had names
/// of our own for the tensors.)
inline constexpr std::uint32_t kCheckpointFormat = 2;

struct TrainerSettings {
  AlgorithmConfig algorithm;
  double temperature = 1.0;  ///< Of sampling; log-probs are computed at it.
  Duration synthetic_step{0};
  Tokens longest_response{1};  ///< That sampling allows.
  Bytes synthetic_weights{0};
};

template <class V>
void describe(V& v, TrainerSettings& s) {
  v.field(1, "algorithm", s.algorithm, {.doc = "How a batch becomes an update."});
  v.field(2, "temperature", s.temperature, {.doc = "Of sampling; log-probs are computed at it."});
  v.field(3, "synthetic_step", s.synthetic_step, {.doc = "Synthetic: time of an update."});
  v.field(5, "synthetic_weights", s.synthetic_weights, {.doc = "Synthetic: size of a version."});
  v.field(4, "longest_response", s.longest_response, {.doc = "That sampling allows, in tokens."});
}

}  // namespace temper::trainer
