// What moves virtual time: one message to a worker, which hosts several simulated actors, and one
// answer. Whatever the actors are told, and say, travels inside.
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
template <class V>
void describe(V& v, Carried& m) {
  v.field(1, "tag", m.tag, {.doc = "As of an envelope."});
  v.field(2, "version", m.version, {.doc = "As of an envelope."});
  v.field(3, "body", m.body, {.doc = "The msgpack of the message."});
}

/// Each of these actors takes its messages and acts up to `until`; answered by time.advanced.
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

template <class V>
void describe(V& v, Advance::Act& m) {
  v.field(1, "actor", m.actor, {.doc = "Which actor."});
  v.field(2, "role", m.role, {.doc = "Given: it is made first."});
  v.field(3, "messages", m.messages, {.doc = "What it is told at `until`, in order."});
}
template <class V>
void describe(V& v, Advance& m) {
  v.field(1, "until", m.until, {.doc = "On the run's virtual clock; never goes back."});
  v.field(2, "acts", m.acts, {.doc = "In this order."});
  v.field(3, "then", m.then, {.doc = "Stop: they say their last, and act no more."});
}
template <class V>
void describe(V& v, Advanced::Act& m) {
  v.field(1, "said", m.said, {.doc = "In order."});
  v.field(2, "next", m.next, {.doc = "When it acts by itself next; none: when it is asked."});
  v.field(3, "error", m.error, {.doc = "Why it failed; or empty. Later actors did not act."});
}
template <class V>
void describe(V& v, Advanced& m) {
  v.field(1, "until", m.until, {.doc = "As asked."});
  v.field(3, "acts", m.acts, {.doc = "Of the actors, in the order asked; up to one that failed."});
}

}  // namespace temper::actors
