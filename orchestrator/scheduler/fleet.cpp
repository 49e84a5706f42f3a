#include "orchestrator/scheduler/fleet.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace temper::orchestrator {
namespace {

/// The deadlines an actor is under, each with what it is for.
template <class F>
void for_each_deadline(const ActorState& a, F&& f) {
  if (a.life == Life::Launching)
    f(a.launch_deadline, std::string("start"));
  if (a.life != Life::Ready)
    return;
  if (a.staging) {
    f(a.weights_deadline,
      fmt::format("{} weights version {}", a.committing ? "commit" : "stage", *a.staging));
  }
  if (a.switching)
    f(a.switch_deadline, fmt::format("switch: {}", name_of(*a.switching)));
}

}  // namespace

std::optional<Time> Fleet::next_deadline() const {
  std::optional<Time> earliest;
  for (const ActorState& a : states_) {
    for_each_deadline(
        a, [&](Time t, const std::string&) { earliest = earliest ? std::min(*earliest, t) : t; });
  }
  return earliest;
}

std::optional<std::pair<ActorId, std::string>> Fleet::overdue(Time now) const {
  std::optional<std::pair<ActorId, std::string>> found;
  for (std::uint32_t i = 0; i < states_.size() && !found; ++i) {
    for_each_deadline(states_[i], [&](Time t, std::string what) {
      if (t <= now && !found)
        found = {ActorId(i), std::move(what)};
    });
  }
  return found;
}

}  // namespace temper::orchestrator
