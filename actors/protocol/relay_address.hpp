// Address at which a worker relays weights to other workers.
#pragma once

#include "core/describe.hpp"

#include <string>

namespace temper::actors {

struct RelayAddress {
  std::string endpoint;  ///< Empty if the worker does not relay.
  std::string key;       ///< Its CURVE public key.
  bool operator==(const RelayAddress&) const = default;
};
void describe(auto& v, RelayAddress& a) {
  v.field(1, "endpoint", a.endpoint, {.doc = "Where it listens; empty: it does not relay."});
  v.field(2,
          "key",
          a.key,
          {.doc = "Its CURVE public key, which it also uses when it fetches from others, in "
                  "ZeroMQ's text form."});
}

}  // namespace temper::actors
