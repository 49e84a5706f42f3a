// The column that names the source of a problem.
#pragma once

#include "actors/task/prompts.hpp"

namespace temper::actors {

/// Name of the column.
inline constexpr const char* kSourceColumn = "source";

/// Sets the source of a problem, and its column. An empty source changes nothing. False: the
/// problem has a column of this name.
bool set_source(Problem& problem, const std::string& source);

}  // namespace temper::actors
