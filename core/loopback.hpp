// Whether an address is this machine itself.
#pragma once

#include <string_view>

namespace temper {

/// `localhost`, any address of 127.0.0.0/8, `::1`, `[::1]`. No other name, whatever it resolves to
/// now.
bool is_loopback(std::string_view host);

}  // namespace temper
