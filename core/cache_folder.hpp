// The folder in which models and other results that can be made again are kept.
#pragma once

#include <filesystem>

namespace temper {

/// $TEMPER_CACHE, else $XDG_CACHE_HOME/temper, else ~/.cache/temper; an empty variable is treated
/// as unset.
std::filesystem::path cache_folder();

}  // namespace temper
