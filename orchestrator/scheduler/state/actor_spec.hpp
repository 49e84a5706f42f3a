// One actor of a run: its role, its cards, and whether they are time-shared.
#pragma once

#include "actors/protocol/role_config.hpp"
#include "core/describe.hpp"

#include <optional>
#include <string>
#include <vector>

namespace temper::orchestrator {

/// One actor slot. Its id is its index in SchedulerConfig::actors and never changes: a removed
/// actor keeps its index, and an added one is appended.
struct ActorSpec {
  std::string name;
  actors::RoleKind role = actors::RoleKind::Rollout;
  std::vector<CardId> cards;
  std::int32_t concurrency = 0;  ///< rollout: responses in flight.
  bool takes_turns = false;      ///< rollout, reference: time-shares the trainer's cards.
  bool attached = false;         ///< Another launcher starts its worker; the run waits for it.
  bool away = false;             ///< Removed from the run; `cards` are those that it had.
  /// reference: index in TeacherPlan::names; none in a run without teachers.
  std::optional<std::uint32_t> teacher{};

  /// Whether each can do the work of the other.
  bool does_work_of(const ActorSpec& other) const {
    return role == other.role && teacher == other.teacher;
  }
};

void describe(auto& v, ActorSpec& c) {
  v.field(1, "name", c.name, {.doc = "Slot name, e.g. `rollout-0`."});
  v.field(2, "role", c.role, {.doc = "Role."});
  v.field(3, "cards", c.cards, {.doc = "Cards it runs on."});
  v.field(4, "concurrency", c.concurrency, {.doc = "rollout: responses in flight."});
  v.field(5, "takes_turns", c.takes_turns, {.doc = "Time-shares the trainer's cards."});
  v.field(6, "attached", c.attached, {.doc = "Another launcher starts its worker."});
  v.field(7, "away", c.away, {.doc = "Removed from the run."});
  v.field(8,
          "teacher",
          c.teacher,
          {.doc = "reference: number of its teacher, in the order of their names."});
}

}  // namespace temper::orchestrator
