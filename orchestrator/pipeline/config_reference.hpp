// Generator of docs/reference/config.md.
#pragma once

#include <string>

namespace temper::orchestrator {

/// The text of docs/reference/config.md: every key with its type, default, bounds and meaning.
std::string write_config_reference();

}  // namespace temper::orchestrator
