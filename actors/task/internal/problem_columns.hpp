// The columns that name the source and the teacher of a problem.
#pragma once

#include "actors/task/prompts.hpp"

namespace temper::actors {

/// Name of the column.
inline constexpr const char* kSourceColumn = "source";

/// Sets the source of a problem, and its column. An empty source changes nothing. False: the
/// problem has a column of this name.
bool set_source(Problem& problem, const std::string& source);

/// The index in `teachers` of the name in this column. Error: the column is missing, or has
/// something else.
Result<std::uint8_t> teacher_in(const Problem& problem,
                                const std::string& column,
                                const std::vector<std::string>& teachers);

}  // namespace temper::actors
