// The head of every message. On the wire a message has two frames: this envelope and the body, each
// a msgpack map keyed by field number. docs/reference/protocol.md has a worked example.
#pragma once

#include "core/describe.hpp"

#include <optional>

namespace temper::actors {

/// Incremented when peers with the old and the new number could misunderstand each other.
inline constexpr std::uint32_t kProtocolVersion = 2;

/// Position of a piece in the body of its message. The pieces of a message are consecutive; only
/// heartbeats and `actor.taken` can come between them.
struct Piece {
  std::uint64_t offset = 0;
  std::uint64_t total = 0;
};
void describe(auto& v, Piece& p) {
  v.field(1, "offset", p.offset, {.doc = "Position of the frame in the body, in bytes."});
  v.field(2, "total", p.total, {.doc = "Size of the whole body."});
}

struct Envelope {
  std::uint32_t tag = 0;         ///< Message type: `kTag` of its struct.
  std::uint32_t version = 1;     ///< `kVersion` of the sender's struct.
  std::uint64_t sequence = 0;    ///< Number of the message or piece among those of the sender, from
                                 ///< 1.
  std::optional<Piece> piece{};  ///< Set if the frame is a piece of the body.
};

void describe(auto& v, Envelope& e) {
  v.field(1, "tag", e.tag, {.doc = "Number of the message type."});
  v.field(2, "version", e.version, {.doc = "Version of the message type, from the sender."});
  v.field(3, "sequence", e.sequence, {.doc = "Position among the sender's messages, from 1."});
  v.field(4, "piece", e.piece, {.doc = "If present, the second frame is a piece of the body."});
}

}  // namespace temper::actors
