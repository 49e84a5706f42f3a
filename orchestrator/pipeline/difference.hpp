// The first difference between two configurations, as text.
#pragma once

#include <string>
#include <utility>

namespace temper::orchestrator {

/// The first line that differs, as it is in each text.
std::pair<std::string, std::string> first_difference(const std::string& a, const std::string& b);

}  // namespace temper::orchestrator
