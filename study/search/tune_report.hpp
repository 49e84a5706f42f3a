// What a search found (tune.hpp), for people and for plots.
#pragma once

#include "core/result.hpp"
#include "study/search/tune.hpp"

#include <string>

namespace temper::study {

/// The best few beside the configuration as given, what was gained, and how sure that is.
std::string tune_text(const Tuned& tuned);
/// One row for everything that was run, best first.
std::vector<TuneRow> tune_rows(const Tuned& tuned);
/// The most tokens/s of each mode over the bound, and their mean staleness, by the longest run that
/// was made of each.
std::string tune_svg(const Tuned& tuned);

}  // namespace temper::study
