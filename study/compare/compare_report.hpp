// A comparison for people: a table that is also Markdown, and plots. Cells are means over the seeds
// that ran; where it matters with the least and the most of them.
#pragma once

#include "study/compare/compare.hpp"

#include <optional>
#include <string>

namespace temper::study {

/// A table, what its columns mean where that is not plain, and below it what did not run or failed,
/// with the reason.
std::string compare_text(const PolicyComparison& comparison);

/// Time (that of `sync` = 1, or that of the first cell that ran), largest s and waste over eta; a
/// line for each policy and value of what is varied, a gap where nothing ran. Requires: a row.
std::string compare_svg(const PolicyComparison& comparison, const std::string& title);

enum class RewardAxis { Steps, Time };
/// Smooth reward (study/simulate/learning.hpp) over updates or over time, a line for each cell, as
/// far as all of its seeds go. None: nothing learns.
std::optional<std::string> rewards_svg(const PolicyComparison& comparison,
                                       RewardAxis axis,
                                       const std::string& title);

}  // namespace temper::study
