// Reports of a comparison: a table that is also Markdown, and plots. Cells are means over the seeds
// that ran, with minimum and maximum where these matter.
#pragma once

#include "study/compare/compare.hpp"

#include <optional>
#include <string>

namespace temper::study {

/// The table, explanations of its columns, and the runs that did not run or failed with their
/// reasons.
std::string compare_text(const PolicyComparison& comparison);

/// Time (relative to `sync`, or to the first cell that ran), largest staleness and waste over eta;
/// a line per rule and varied value, with gaps where nothing ran. Requires: at least one row.
std::string compare_svg(const PolicyComparison& comparison, const std::string& title);

enum class RewardAxis { Steps, Time };
/// Smoothed reward (study/simulate/learning.hpp) over updates or time, a line per cell, as far as
/// all its seeds go. None: nothing is trained.
std::optional<std::string> rewards_svg(const PolicyComparison& comparison,
                                       RewardAxis axis,
                                       const std::string& title);

}  // namespace temper::study
