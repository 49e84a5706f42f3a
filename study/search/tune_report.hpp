// Reports of a search (tune.hpp): text, rows and plots.
#pragma once

#include "core/result.hpp"
#include "study/search/tune.hpp"

#include <string>

namespace temper::study {

/// The best few and the configuration as given, the gain, and the accuracy.
std::string tune_text(const TuneResult& tuned);
/// One row per configuration that ran, best first.
std::vector<TuneRow> tune_rows(const TuneResult& tuned);
/// The most tokens/s of each mode over the bound, and their mean staleness, from the longest run of
/// each.
std::string tune_svg(const TuneResult& tuned);

}  // namespace temper::study
