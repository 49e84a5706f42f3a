// `temper serve RUNS`: the page of runs that go on or have ended, and what Prometheus scrapes.
#pragma once

#include "cli/command/command_line.hpp"
#include "cli/serve/server.hpp"

#include <optional>
#include <string>

namespace temper::cli {

/// Where a page is served unless told; any free port where this one is taken.
inline constexpr std::uint16_t kUsualPort = 7878;

/// Serves these folders on "ADDRESS:PORT", a port, or (empty) the usual place. `token`: what
/// clients show; empty: a fresh one.
Result<std::unique_ptr<Server>> serve(std::vector<std::filesystem::path> folders,
                                      const std::string& address,
                                      std::string token = {});

/// `temper serve`: its flags, and what it does.
Handler serve_command(Flags& flags);

}  // namespace temper::cli
