#pragma once

#include "actors/transport/transport_config.hpp"
#include "core/log.hpp"

namespace temper::actors {

inline const Log kNoLog = Log::discard();
inline const TransportConfig kDefaults;

}  // namespace temper::actors
