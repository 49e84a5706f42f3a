#include "tests/actors/protocol/protocol_page.hpp"

#include "actors/protocol/directions.hpp"
#include "actors/protocol/permissions.hpp"
#include "actors/transport/message.hpp"
#include "core/check.hpp"
#include "core/markdown.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <vector>

namespace temper::test {
namespace {

using namespace actors;

std::string anchor(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c != '.')
      out += c;
  }
  return out;
}

struct Piece {
  std::string_view bytes;
  std::string_view meaning;
};

/// The bytes of `frame` with their meanings. Requires: the pieces are exactly the frame.
std::string explained(std::string_view title,
                      std::string_view frame,
                      const std::vector<Piece>& pieces) {
  std::string together;
  std::string out = fmt::format("{}, {} bytes:\n\n", title, frame.size());
  for (const Piece& piece : pieces) {
    together += piece.bytes;
    out += fmt::format("    {:<26}{}\n", hex(piece.bytes, 64), piece.meaning);
  }
  TEMPER_CHECK(together == frame, "the pieces of the worked example must equal the frame");
  return out + "\n";
}

std::string worked_example() {
  using namespace std::string_view_literals;
  Generate message;
  message.lease = LeaseId(300);
  message.prompt = {5, 11};
  message.items = {{ResponseId(32), {}}};
  const OutgoingMessage out = outgoing(message);
  return R"(## A worked example

The orchestrator's 42nd message asks, under lease 300, for response 32 to the prompt of the tokens 5
and 11; nothing of it was generated before.

)" +
         explained("Envelope",
                   encode_head(out, 42),
                   {{"\x84"sv, "map of 4 fields"},
                    {"\x01\x14"sv, "1 `tag`: 20, rollout.generate"},
                    {"\x02\x01"sv, "2 `version`: 1"},
                    {"\x03\x2a"sv, "3 `sequence`: 42"},
                    {"\x04\xc0"sv, "4 `piece`: none, the body is complete"}}) +
         explained("Body",
                   out.body,
                   {{"\x84"sv, "map of 4 fields"},
                    {"\x01\xcd\x01\x2c"sv, "1 `lease`: 300, a 16-bit integer"},
                    {"\x02\xc4\x08"sv, "2 `prompt`: a blob of 8 bytes"},
                    {"\x05\x00\x00\x00"sv, "token 5, little endian"},
                    {"\x0b\x00\x00\x00"sv, "token 11"},
                    {"\x03\x91"sv, "3 `items`: a list of 1"},
                    {"\x82"sv, "map of 2 fields"},
                    {"\x01\x20"sv, "1 `response`: 32"},
                    {"\x02\xc4\x00"sv, "2 `prefix`: an empty blob"},
                    {"\x04\xc2"sv, "4 `greedy`: false"}});
}

constexpr std::string_view kIntroduction = R"(# Protocol

The protocol between the orchestrator and its workers. This page is generated from the declarations
in `actors/protocol/`. A test fails if it is stale, and `tests/golden/protocol/` has the bytes of
every message. `temper protocol --json` prints the same information for programs; the Python package
(`python/`) is generated from it. To write your own worker, see [write a role](../how-to/write-a-role.md).

The orchestrator binds one ZeroMQ ROUTER socket; each worker connects one DEALER socket. A message
has two frames:

| frame | content | limit |
|---|---|---|
| 1 | the envelope | 256 bytes |
| 2 | the body, or a piece of it: the message that the envelope's `tag` names | `transport.max_frame` |

Envelope and body are each one msgpack map from field number to value.

- A receiver skips fields that it does not know, and missing fields keep their default. Field numbers
  are never reused with another meaning.
- A receiver rejects a message older than the oldest version that it understands. `actor.hello` has
  the version of the whole protocol, which must equal the orchestrator's.
- Integers and ids are msgpack integers. An enumeration is the index of its name in the list, from 0.
  Text is str in UTF-8, a list is an array, a map is a map, and null is nil. Durations and times are
  integer nanoseconds; sizes are integer bytes. A number without a fraction may be sent as an integer.
- A blob is bin: the elements in little-endian byte order.
- A body larger than 1 MiB (plus 4 KiB for the header of a weights chunk) is split into pieces of
  1 MiB. They are sent in order, each with an envelope that has the message's `tag` and the position
  of the piece. Only `actor.heartbeat`, `actor.taken` and `weights.feed` can come between two pieces.
- Flow control: frames of 64 KiB or more count toward a window. A sender has at most 16 MiB of them in
  flight to one peer. The receiver acknowledges received bytes with `actor.taken`, at least once per
  MiB. The three messages named above are sent ahead of everything queued, so a heartbeat waits for at
  most 16 MiB.
- The frames of one sender are numbered by `sequence`. If a number is missing, the receiver drops the
  peer: a connection that broke and was re-established may have lost messages.
- Weights are always the bytes of one safetensors file, however they are transferred.
- A message that is malformed, too large, or from a peer that is not registered is counted and dropped.
  A registered actor that sends a message that is not allowed is replaced
  ([allowed messages](#messages-that-an-actor-may-send)).

)";

/// "rollout, trainer"; "any" if the list has all `most` values.
template <class E>
std::string names(std::span<const E> list, std::size_t most) {
  if (list.size() == most)
    return "any";
  std::string out;
  for (const E e : list)
    out += (out.empty() ? "" : ", ") + std::string(name_of(e));
  return out;
}

std::string permissions() {
  std::string out = R"(
## Messages that an actor may send

A message is accepted only if its sender has one of these roles, is in one of these stages, and all
claims hold. An actor is `starting` from its launch until it is ready, and then `at work`. After it was
given up it may send nothing. An actor that sends anything else is replaced, and the message has no
effect (`scheduler/scheduler_claims.cpp`).

| message | roles | stage | claims |
|---|---|---|---|
)";
  std::vector<Claim> used;
  for (const Permission& p : kPermissions) {
    std::string claims;
    for (const Claim claim : p.claims) {
      if (std::find(used.begin(), used.end(), claim) == used.end())
        used.push_back(claim);
      const auto number = std::find(used.begin(), used.end(), claim) - used.begin() + 1;
      claims += fmt::format("{}{}", claims.empty() ? "" : ", ", number);
    }
    out += fmt::format("| `{}` | {} | {} | {} |\n",
                       p.message,
                       names(p.roles, 4),
                       names(p.stages, 3),
                       claims.empty() ? "none" : claims);
  }
  out += "\n";
  for (std::size_t i = 0; i < used.size(); ++i) {
    out += fmt::format("{}. {}{}.\n",
                       i + 1,
                       static_cast<char>(std::toupper(sentence(used[i]).front())),
                       sentence(used[i]).substr(1));
  }
  return out;
}

}  // namespace

std::string hex(std::string_view bytes, std::size_t per_line) {
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i > 0)
      out += i % per_line == 0 ? '\n' : ' ';
    out += fmt::format("{:02x}", static_cast<unsigned char>(bytes[i]));
  }
  return out;
}

std::string protocol_page() {
  const MarkdownOptions options{.heading = "###", .ids = true, .defaults = false};
  std::string page(kIntroduction);
  page += fmt::format("Protocol version: {}.\n\n## Envelope\n\n", kProtocolVersion);
  page += to_markdown<Envelope>({}, options) + "\n" + worked_example();
  page += "## Messages\n\n| message | tag | version | direction |\n|---|---|---|---|\n";
  AllMessages::for_each([&]<class M>(std::type_identity<M>) {
    page += fmt::format("| [`{0}`](#{1}) | {2} | {3} | {4} |\n",
                        M::kName,
                        anchor(M::kName),
                        M::kTag,
                        M::kVersion,
                        name_of(direction<M>()));
  });
  page += permissions();
  AllMessages::for_each([&]<class M>(std::type_identity<M>) {
    page += fmt::format("\n## `{}`\n\nTag {}, version {}, understood from version {}; {}.\n\n",
                        M::kName,
                        M::kTag,
                        M::kVersion,
                        M::kOldestVersion,
                        name_of(direction<M>()));
    page += to_markdown<M>({}, options);
  });
  return page;
}

}  // namespace temper::test
