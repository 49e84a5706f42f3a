// Requests with parameters that a publication does not state: "context=512..4096", with two or more
// values, or "tp/dp=8/1..4/2" for parameters that vary together. Such a request has an interval as
// its answer: the lowest and highest of all combinations that can be predicted. Values only.
#pragma once

#include "core/result.hpp"
#include "sim_hw/queries/queries.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace temper::sim_hw {

/// One unstated parameter, or parameters that vary together.
struct OpenParameter {
  std::vector<std::string> keys;                  ///< "tp", "dp".
  std::vector<std::vector<std::string>> options;  ///< Values of the keys, per option.
  std::string name() const;                       ///< "tp/dp"
};

/// The answers for every combination of the options; without open parameters, one.
struct BandAnswer {
  std::vector<OpenParameter> open;
  std::vector<std::vector<std::size_t>> chosen;  ///< Option of each open parameter, per answer.
  std::vector<Result<Cost>> answers;
};
/// Errors: more than 1000 combinations, or options that do not match their keys.
Result<BandAnswer> answer_band(const CostContext& context,
                               const Request& request,
                               std::span<const Kind> known);

/// The interval of a metric, and the open parameter that changes it most while the others keep
/// their first option. Error: no combination has a prediction; that of the first one.
struct Band {
  double low = 0;
  double high = 0;
  std::string matters;
};
Result<Band> band_of(const BandAnswer& answer, std::string_view metric);

}  // namespace temper::sim_hw
