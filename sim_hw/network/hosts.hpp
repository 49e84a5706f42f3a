// Publication of weights from one host to others over an ordinary TCP network. The model is that of
// devices (reshard.hpp): a device is a host with one link to a switch.
//
// Assumptions. One copy per host. Every link is full duplex with the same bandwidth; the switch is
// no bottleneck. Direct: the first host sends every copy. Tree: each host forwards a complete chunk
// to the next host. The links carry no other traffic.
//
// Equation. t = max over ports of wire bytes / bandwidth, from reshard_seconds() in chunks;
//   Tree: + (hosts - 1) x one chunk's time, until the last host has its first chunk.
//   wire bytes of a chunk of n bytes = (n + kOfChunk) x kFrame / kPayload
// Constants: protocol sizes; none is fitted.
//   kOfChunk  the envelope and the fields of weights.chunk (docs/reference/protocol.md), 45 bytes;
//             for each of its two frames CURVE's 33 bytes (ZMTP 3.1: command name 8, nonce 8, flags
//             1, box 16) and ZMTP's header, 9 and 2 bytes
//   kFrame    an Ethernet frame of a TCP segment, 1514 bytes, which a rate limit of tc counts
//   kPayload  its payload: 1500 less 20 (IPv4), 20 (TCP) and 12 (time stamps)
// Range: links slow enough that processors are no bottleneck (a core encrypts about 500 MB/s); no
// losses except those of TCP's own probing.
#pragma once

#include "sim_hw/network/collectives.hpp"

namespace temper::sim_hw {

struct HostPublication {
  double bytes = 0;           ///< Size of the image.
  std::int64_t hosts = 1;     ///< Receiving hosts.
  double bandwidth = 1;       ///< For a host's link in each direction, bytes per second.
  double chunk = 1 << 20;     ///< Bytes that are forwarded at once.
  FanOut how = FanOut::Tree;  ///< Direct: broadcast; Tree: relay.
};
/// Bytes that cross a link for an image of `bytes`.
double wire_bytes(double bytes, double chunk);
/// Seconds until the last host has the whole image. Requires: all numbers above 0.
double host_publication_seconds(const HostPublication& publication);

}  // namespace temper::sim_hw
