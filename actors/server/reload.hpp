// The request that makes a user's server load new weights (`engine.reload`).
#pragma once

#include "actors/server/server_api.hpp"

namespace temper::actors {

/// Parses `METHOD /PATH` or `METHOD /PATH BODY`; keeps `{model}` and `{label}`. Errors:
/// InvalidInput for another form, a body that is not JSON, or a request without `{model}`.
Result<ServerCall> parse_reload(std::string_view text);

/// Replaces `{model}` and `{label}` in the request.
ServerCall fill_reload(ServerCall request, const std::string& folder, const std::string& label);

}  // namespace temper::actors
