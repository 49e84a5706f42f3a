// Limits of a connection: the `transport` section.
#pragma once

#include "core/describe.hpp"

namespace temper::actors {

struct TransportConfig {
  Bytes max_frame{Bytes::rep{256} << 20};
  std::int32_t queue = 10'000;
  Duration handshake = std::chrono::seconds(5);
};

template <class V>
void describe(V& v, TransportConfig& c) {
  v.field(1,
          "max_frame",
          c.max_frame,
          {.doc = "Largest frame accepted; a peer that sends a larger one is disconnected.",
           .min = Bytes(1024),
           .max = Bytes(Bytes::rep{1} << 31)});
  v.field(2,
          "queue",
          c.queue,
          {.doc = "Messages held for one peer in one direction.", .min = 16, .max = 1'000'000});
  v.field(3,
          "handshake",
          c.handshake,
          {.doc = "Time a new connection has for its handshake.",
           .min = std::chrono::milliseconds(10)});
}

}  // namespace temper::actors
