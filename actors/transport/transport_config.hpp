// Connection limits: part of the `transport` configuration section.
#pragma once

#include "core/describe.hpp"

namespace temper::actors {

/// Largest piece of a body; larger frames are slower per byte.
inline constexpr Bytes kPiece{Bytes::rep{1} << 20};

struct TransportConfig {
  Bytes max_frame{Bytes::rep{4} << 20};
  Bytes max_message{Bytes::rep{64} << 30};
  std::int32_t queue = 10'000;
  Duration handshake = std::chrono::seconds(5);
};

void describe(auto& v, TransportConfig& c) {
  v.field(
      1,
      "max_frame",
      c.max_frame,
      {.doc = "Largest frame accepted; a peer that sends a larger frame is disconnected. Larger "
              "messages are sent in pieces of 1 MiB.",
       .min = Bytes(Bytes::rep{2} << 20),
       .max = Bytes(Bytes::rep{1} << 31)});
  v.field(2,
          "queue",
          c.queue,
          {.doc = "Messages queued per peer and direction.", .min = 16, .max = 1'000'000});
  v.field(3,
          "handshake",
          c.handshake,
          {.doc = "Time limit for the handshake of a new connection.",
           .min = std::chrono::milliseconds(10)});
  v.field(4,
          "max_message",
          c.max_message,
          {.doc = "Largest message accepted from a worker, after its pieces are reassembled.",
           .min = Bytes(Bytes::rep{1} << 20),
           .max = Bytes(Bytes::rep{1} << 40)});
}

}  // namespace temper::actors
