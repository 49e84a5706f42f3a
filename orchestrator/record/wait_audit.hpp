// The auditor's part on why references and verifiers wait, with independent code. After every
// record, what each of them was last said to wait for agrees with the responses of training:
//   responses     none of them waits for cards: not those that were handed back while the trainer
//                 or a reference holds cards of engines, nor, for a reference, those of its teacher
//                 that are not scored; and some are generated, unless cards of engines are held
//   shared cards  some wait for cards, or none is generated, in a run that shares cards
//   any other     none is generated
// In a run with evaluations, whose responses are others, only the first rule is checked.
#pragma once

#include "orchestrator/scheduler/state/actor_spec.hpp"
#include "orchestrator/scheduler/state/commands.hpp"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace temper::orchestrator {

class WaitAudit {
 public:
  // --- The stage of a response
  void generating(std::uint64_t response);
  void handed_back(std::uint64_t response);
  void to_score(std::uint64_t response, std::uint32_t teacher = 0);
  /// It is with a reference, needs none, or takes no further part.
  void settled(std::uint64_t response);
  /// The responses [first, last) left.
  void left(std::uint64_t first, std::uint64_t last);
  void clear() { *this = WaitAudit(); }
  /// Engines have at most so many, and none waits for an engine.
  bool last_are_generated(std::size_t most) const {
    return !generating_.empty() && generating_.size() <= most && handed_back_.empty();
  }

  // --- What a reference or a verifier is said to wait for
  void said(const command::Waiting& c) { said_[c.actor.value()] = c; }
  void forget(ActorId actor) { said_.erase(actor.value()); }

  struct Cards {
    bool shared = false;      ///< Engines share cards with other roles.
    bool held = false;        ///< The trainer or a reference holds cards of engines.
    bool evaluating = false;  ///< Engines may generate for an evaluation.
  };
  /// Each violation is reported once.
  std::vector<std::string> check(const std::vector<ActorSpec>& actors, const Cards& cards);

 private:
  std::string wrong(const ActorSpec& actor, WaitKind kind, const Cards& cards) const;
  void leave_scoring(std::map<std::uint64_t, std::uint32_t>::iterator response);

  /// Disjoint: in an engine; in none, and not generated; generated, and not with a reference.
  std::set<std::uint64_t> generating_, handed_back_;
  std::map<std::uint64_t, std::uint32_t> to_score_;   ///< With the teacher of each.
  std::map<std::uint32_t, std::size_t> per_teacher_;  ///< Number of those.
  std::map<std::uint32_t, command::Waiting> said_;
};

}  // namespace temper::orchestrator
