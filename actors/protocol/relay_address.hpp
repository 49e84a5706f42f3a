// Where a worker passes weights on to others.
#pragma once

#include "core/describe.hpp"

#include <string>

namespace temper::actors {

struct RelayAddress {
  std::string endpoint;  ///< Empty: it passes nothing on.
  std::string key;       ///< Its open key of CURVE.
  bool operator==(const RelayAddress&) const = default;
};
template <class V>
void describe(V& v, RelayAddress& a) {
  v.field(1, "endpoint", a.endpoint, {.doc = "Where it listens; empty: it passes nothing on."});
  v.field(2,
          "key",
          a.key,
          {.doc = "Its open key there, which is also the one that it asks others with: CURVE, in "
                  "ZeroMQ's text form."});
}

}  // namespace temper::actors
