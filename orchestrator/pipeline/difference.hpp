// Where two configurations, as text, are not the same.
#pragma once

#include <string>
#include <utility>

namespace temper::orchestrator {

/// The first line that two texts do not share, as in each.
std::pair<std::string, std::string> first_difference(const std::string& a, const std::string& b);

}  // namespace temper::orchestrator
