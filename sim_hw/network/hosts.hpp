// A version of the weights from one host to others over an ordinary network, by TCP: the same model
// as between devices (reshard.hpp), in which a device is a host with one link to a switch.
//
// Assumptions. One copy for each host. Every link has the same bandwidth, each way for itself; the
// switch does not bound. Direct: the first host sends every copy. Tree: each host passes a chunk on
// when it is whole, to the one after it. Nothing else is on the links.
//
// Equation. t = max over ports of wire bytes / bandwidth, from reshard_seconds() in chunks;
//   Tree: + (hosts - 1) x one chunk's time, until the last host has its first chunk.
//   wire bytes of a chunk of n bytes = (n + kOfChunk) x kFrame / kPayload
// Constants: sizes of the protocols, none is fitted.
//   kOfChunk  the envelope and the fields of weights.chunk (docs/protocol.md), 45 bytes; for each
//   of
//             its two frames CURVE's 33 bytes (ZMTP 3.1: command name 8, nonce 8, flags 1, box 16)
//             and ZMTP's header, 9 and 2 bytes
//   kFrame    an Ethernet frame of a TCP segment, 1514 bytes, which a rate limit of tc counts
//   kPayload  what it carries: 1500 less 20 (IPv4), 20 (TCP) and 12 (time stamps)
// Range: links slow enough that processors do not bound (a core encrypts some 500 MB/s); no losses
// but those of TCP's own probing.
#pragma once

#include "sim_hw/network/collectives.hpp"

namespace temper::sim_hw {

struct HostPublication {
  double bytes = 0;           ///< Of the image.
  std::int64_t hosts = 1;     ///< That receive it.
  double bandwidth = 1;       ///< Of a host's link each way, bytes per second.
  double chunk = 1 << 20;     ///< Bytes that are passed on at once.
  FanOut how = FanOut::Tree;  ///< Direct: broadcast; Tree: relay.
};
/// What crosses a link for an image.
double wire_bytes(double bytes, double chunk);
/// Until the last host has it whole. Requires: all numbers above 0.
double host_publication_seconds(const HostPublication& publication);

}  // namespace temper::sim_hw
