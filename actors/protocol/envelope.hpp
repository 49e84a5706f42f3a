// The head of every message. On the wire a message is two frames: this envelope and the body, each
// a msgpack map of field numbers. docs/protocol.md has a worked example.
#pragma once

#include "core/describe.hpp"

namespace temper::actors {

/// Raised when peers of the old and the new number could misunderstand each other.
inline constexpr std::uint32_t kProtocolVersion = 2;

struct Envelope {
  std::uint32_t tag = 0;       ///< Which message, `kTag` of its struct.
  std::uint32_t version = 1;   ///< `kVersion` of the sender's struct.
  std::uint64_t sequence = 0;  ///< Counts the sender's messages from 1.
};

template <class V>
void describe(V& v, Envelope& e) {
  v.field(1, "tag", e.tag, {.doc = "Number of the message type."});
  v.field(2, "version", e.version, {.doc = "Version of the message type, from the sender."});
  v.field(3, "sequence", e.sequence, {.doc = "Position among the sender's messages, from 1."});
}

}  // namespace temper::actors
