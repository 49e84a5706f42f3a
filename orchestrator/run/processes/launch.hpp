// What every driver needs to launch workers: where they connect, what they prove themselves with.
#pragma once

#include "orchestrator/pipeline/sections.hpp"

#include <string>
#include <string_view>

namespace temper::orchestrator {

/// 128 random bits, in hexadecimal.
std::string random_secret();

/// Where the orchestrator listens, as RouterSocket::bind() takes it.
std::string socket_address(const TransportSection& transport);

/// The last line of a worker's output.
std::string_view last_line(std::string_view text);

}  // namespace temper::orchestrator
