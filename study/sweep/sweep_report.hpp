// Reports of a sweep: a table that is also Markdown, CSV, JSON and plots. Cells are means over the
// seeds that ran, with minimum and maximum where these matter.
#pragma once

#include "study/sweep/sweep.hpp"

#include <optional>
#include <string>

namespace temper::study {

/// The table, explanations of its columns, and the runs that did not run or failed with their
/// reasons.
std::string sweep_text(const Sweep& sweep);

/// One line or object per run.
std::string sweep_csv(const Sweep& sweep);
std::string sweep_json(const Sweep& sweep);

/// Tokens/s, busy share and, if any, waste over the first key whose values are numbers; a line per
/// value of the other axes, with gaps where nothing ran. nullopt if no key has only numbers.
std::optional<std::string> sweep_svg(const Sweep& sweep, const std::string& title);

enum class RewardAxis { Steps, Time };
/// Smoothed reward (study/simulate/learning.hpp) over updates or time, a line per cell, as far as
/// all its seeds go. nullopt if nothing is trained.
std::optional<std::string> rewards_svg(const Sweep& sweep,
                                       RewardAxis axis,
                                       const std::string& title);

}  // namespace temper::study
