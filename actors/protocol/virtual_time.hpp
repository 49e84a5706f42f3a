// Messages that advance virtual time: one request to a worker that hosts several simulated actors,
// and one reply. All messages to and from these actors travel inside.
#pragma once

#include "actors/protocol/envelope.hpp"
#include "actors/protocol/role_config.hpp"
#include "core/units.hpp"

#include <optional>
#include <string>
#include <vector>

namespace temper::actors {

/// A message inside another one.
struct Carried {
  std::uint32_t tag = 0;
  std::uint32_t version = 1;
  std::string body;
};
void describe(auto& v, Carried& m) {
  v.field(1, "tag", m.tag, {.doc = "As in an envelope."});
  v.field(2, "version", m.version, {.doc = "As in an envelope."});
  v.field(3, "body", m.body, {.doc = "msgpack encoding of the message."});
}

/// Delivers messages to each actor and runs it up to `until`; answered by time.advanced.
struct Advance {
  static constexpr std::string_view kName = "time.advance";
  static constexpr std::uint32_t kTag = 90, kVersion = 2, kOldestVersion = 2;
  enum class Then { GoOn, Stop };
  struct Act {
    ActorId actor;
    std::optional<RoleConfig> role;
    std::vector<Carried> messages;
  };
  Time until{};
  std::vector<Act> acts;
  Then then = Then::GoOn;
};
struct Advanced {
  static constexpr std::string_view kName = "time.advanced";
  static constexpr std::uint32_t kTag = 91, kVersion = 2, kOldestVersion = 2;
  struct Act {
    std::vector<Carried> said;
    std::optional<Time> next;
    std::string error;
  };
  Time until{};
  std::vector<Act> acts;
};

}  // namespace temper::actors

template <>
struct temper::EnumNames<temper::actors::Advance::Then> {
  using E = actors::Advance::Then;
  static constexpr std::array<std::pair<E, std::string_view>, 2> value{
      {{E::GoOn, "go_on"}, {E::Stop, "stop"}}};
};

namespace temper::actors {

void describe(auto& v, Advance::Act& m) {
  v.field(1, "actor", m.actor, {.doc = "The actor."});
  v.field(2, "role", m.role, {.doc = "If present, the actor is created first."});
  v.field(3, "messages", m.messages, {.doc = "Messages delivered at `until`, in order."});
}
void describe(auto& v, Advance& m) {
  v.field(1, "until", m.until, {.doc = "Time on the run's virtual clock; never decreases."});
  v.field(2, "acts", m.acts, {.doc = "The actors to run, in this order."});
  v.field(3,
          "then",
          m.then,
          {.doc = "`stop`: the actors send their last messages and do not run again."});
}
void describe(auto& v, Advanced::Act& m) {
  v.field(1, "said", m.said, {.doc = "Messages sent by the actor, in order."});
  v.field(2, "next", m.next, {.doc = "When it acts next on its own; null: only on request."});
  v.field(3,
          "error",
          m.error,
          {.doc = "Why it failed; empty if it did not. Later actors did not run."});
}
void describe(auto& v, Advanced& m) {
  v.field(1, "until", m.until, {.doc = "As requested."});
  v.field(
      3, "acts", m.acts, {.doc = "Results in the order of the request, up to the first failure."});
}

}  // namespace temper::actors
