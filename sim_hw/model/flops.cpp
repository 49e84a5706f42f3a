#include "sim_hw/model/flops.hpp"

#include "sim_hw/model/numbers.hpp"
#include "sim_hw/model/parameters.hpp"

namespace temper::sim_hw {

ModelFlops::ModelFlops(const ModelSpec& model) {
  const ParameterCount active = count_active_parameters(model);
  const std::int64_t head = active.head > 0 ? active.head : active.embedding;
  per_token = 2 * as_double(active.without_lookup() - head);
  per_pair =
      2 * as_double(model.layers * model.heads) * as_double(model.head_dim + model.value_dim());
  per_logit = 2 * as_double(head);
}

}  // namespace temper::sim_hw
