// For tests of sockets: bounded waits, without sleeping longer than needed.
#pragma once

#include "actors/transport/socket.hpp"
#include "core/clock.hpp"

#include <poll.h>

#include <optional>

namespace temper::test {

/// Far beyond what any test takes; only a failing one waits so long.
inline constexpr Duration kPatience = std::chrono::seconds(20);

/// Calls `done` until it is true, or until patience ends; between calls waits for `router`.
template <class F>
bool eventually(actors::RouterSocket& router, F done) {
  const RealClock clock;
  while (!done()) {
    if (clock.now() >= Time(kPatience))
      return false;
    pollfd item{.fd = router.fd(), .events = POLLIN, .revents = 0};
    if (!router.readable())
      ::poll(&item, 1, 5);
  }
  return true;
}

/// The next message, or none when patience ends.
inline std::optional<actors::Received> receive(actors::RouterSocket& router) {
  std::optional<actors::Received> message;
  eventually(router, [&] { return (message = router.try_receive()).has_value(); });
  return message;
}

}  // namespace temper::test
