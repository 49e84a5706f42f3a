// `temper serve RUNS`: the web page and the Prometheus metrics of running and finished runs.
#pragma once

#include "cli/command/command_line.hpp"
#include "cli/serve/server.hpp"

#include <optional>
#include <string>

namespace temper::cli {

/// The default port; if it is taken, any free port is used.
inline constexpr std::uint16_t kUsualPort = 7878;

/// Serves these folders on "ADDRESS:PORT", on a port, or (empty) on the default address. `token`:
/// the access token of clients; empty: a new one. Errors: invalid or unavailable address.
Result<std::unique_ptr<Server>> serve(std::vector<std::filesystem::path> folders,
                                      const std::string& address,
                                      std::string token = {});

/// Declares the flags of `temper serve`.
Handler serve_command(Flags& flags);

}  // namespace temper::cli
