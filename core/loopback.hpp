// Recognizes addresses of the local machine.
#pragma once

#include <string_view>

namespace temper {

/// True for `localhost`, any address in 127.0.0.0/8, `::1` and `[::1]`. Other names are not
/// resolved.
bool is_loopback(std::string_view host);

}  // namespace temper
