// The request by which a server of the user's is told to load new weights (`engine.reload`).
#pragma once

#include "actors/server/server_api.hpp"

namespace temper::actors {

/// `METHOD /PATH`, or `METHOD /PATH BODY`; `{model}` and `{label}` stay as they are. Errors:
/// another form; a body that is no JSON; a request that does not name the folder.
Result<ServerCall> parse_reload(std::string_view text);

/// The request with these in the places of `{model}` and `{label}`.
ServerCall fill_reload(ServerCall request, const std::string& folder, const std::string& label);

}  // namespace temper::actors
