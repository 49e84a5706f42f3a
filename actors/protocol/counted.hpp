// Work on simulated hardware, where a token is only counted: the messages of work.hpp with lengths
// in place of tokens. Weights and role switches use weights.hpp; virtual_time.hpp carries them.
#pragma once

#include "actors/protocol/envelope.hpp"
#include "actors/protocol/sample.hpp"
#include "actors/protocol/work.hpp"

#include <optional>

namespace temper {
namespace actors {

/// Where the keys and values of an interrupted response are: nowhere, at the engine that is asked
/// to go on with it, or at another one, that gave it up.
enum class CachedAt { Nowhere, Here, Elsewhere };

}  // namespace actors

template <>
struct EnumNames<actors::CachedAt> {
  using C = actors::CachedAt;
  static constexpr std::array<std::pair<C, std::string_view>, 3> value{
      {{C::Nowhere, "nowhere"}, {C::Here, "here"}, {C::Elsewhere, "elsewhere"}}};
};

namespace actors {

/// Generate responses of one group. How long they get is the engine's to know.
struct CountedGenerate {
  static constexpr std::string_view kName = "counted.generate";
  static constexpr std::uint32_t kTag = 80, kVersion = 1, kOldestVersion = 1;
  struct Item {
    ResponseId response;
    Tokens prefix;  ///< Made by an interrupted attempt; counts towards the length.
    CachedAt cached = CachedAt::Nowhere;
  };
  LeaseId lease;
  GroupId group;
  std::vector<Item> items;
};
template <class V>
void describe(V& v, CountedGenerate::Item& m) {
  v.field(1, "response", m.response, {.doc = "Response."});
  v.field(2, "prefix", m.prefix, {.doc = "Tokens it already has."});
  v.field(3, "cached", m.cached, {.doc = "Where keys and values of those tokens are."});
}
template <class V>
void describe(V& v, CountedGenerate& m) {
  v.field(1, "lease", m.lease, {.doc = "Lease of this work."});
  v.field(2, "group", m.group, {.doc = "Group; its prompt's length follows from it."});
  v.field(3, "items", m.items, {.doc = "Responses to generate."});
}

/// Responses finished or interrupted since the last report.
struct CountedGenerated {
  static constexpr std::string_view kName = "counted.generated";
  static constexpr std::uint32_t kTag = 81, kVersion = 1, kOldestVersion = 1;
  struct Item {
    LeaseId lease;
    ResponseId response;
    Tokens prompt;
    Tokens tokens;  ///< Sampled by this attempt.
    std::vector<Segment> segments;
    FinishReason finish = FinishReason::End;
    bool cached = false;  ///< Interrupted: its keys and values are kept.
  };
  std::vector<Item> items;
};
template <class V>
void describe(V& v, CountedGenerated::Item& m) {
  v.field(1, "lease", m.lease, {.doc = "Lease of the work."});
  v.field(2, "response", m.response, {.doc = "Response."});
  v.field(3, "prompt", m.prompt, {.doc = "Length of its prompt."});
  v.field(4, "tokens", m.tokens, {.doc = "Tokens sampled by this attempt."});
  v.field(5, "segments", m.segments, {.doc = "Runs of tokens of one version."});
  v.field(6, "finish", m.finish, {.doc = "Why it ended."});
  v.field(7, "cached", m.cached, {.doc = "Interrupted: its keys and values are kept."});
}
template <class V>
void describe(V& v, CountedGenerated& m) {
  v.field(1, "items", m.items, {.doc = "Responses that ended."});
}

/// Score responses under the reference weights.
struct CountedScore {
  static constexpr std::string_view kName = "counted.score";
  static constexpr std::uint32_t kTag = 82, kVersion = 1, kOldestVersion = 1;
  LeaseId lease;
  std::vector<Tokens> lengths;  ///< Prompt and response of each.
  Tokens repeated;              ///< Of them, in prompts that the response before has too.
};
template <class V>
void describe(V& v, CountedScore& m) {
  v.field(1, "lease", m.lease, {.doc = "Lease of this work."});
  v.field(2, "lengths", m.lengths, {.doc = "Prompt and response tokens of each response."});
  v.field(3,
          "repeated",
          m.repeated,
          {.doc = "Of these, tokens of prompts that the response before has too."});
}
struct CountedScored {
  static constexpr std::string_view kName = "counted.scored";
  static constexpr std::uint32_t kTag = 83, kVersion = 1, kOldestVersion = 1;
  LeaseId lease;
};
template <class V>
void describe(V& v, CountedScored& m) {
  v.field(1, "lease", m.lease, {.doc = "Lease of the work."});
}

/// Judge responses; answered by reward.judged.
struct CountedJudge {
  static constexpr std::string_view kName = "counted.judge";
  static constexpr std::uint32_t kTag = 84, kVersion = 1, kOldestVersion = 1;
  struct Item {
    ResponseId response;
    Tokens tokens;
  };
  LeaseId lease;
  std::vector<Item> items;
};
template <class V>
void describe(V& v, CountedJudge::Item& m) {
  v.field(1, "response", m.response, {.doc = "Response; its reward follows from it."});
  v.field(2, "tokens", m.tokens, {.doc = "Length of the response."});
}
template <class V>
void describe(V& v, CountedJudge& m) {
  v.field(1, "lease", m.lease, {.doc = "Lease of this work."});
  v.field(2, "items", m.items, {.doc = "Responses to judge."});
}

/// One policy update; answered by trainer.trained, whose weights carry a version and a size only.
struct CountedTrain {
  static constexpr std::string_view kName = "counted.train";
  static constexpr std::uint32_t kTag = 85, kVersion = 1, kOldestVersion = 1;
  struct Item {
    GroupId group;
    Tokens prompt;
    Tokens response;
    double reward = 0;
  };
  LeaseId lease;
  Certificate certificate;
  std::vector<Item> items;
};
template <class V>
void describe(V& v, CountedTrain::Item& m) {
  v.field(1, "group", m.group, {.doc = "Group."});
  v.field(2, "prompt", m.prompt, {.doc = "Prompt tokens."});
  v.field(3, "response", m.response, {.doc = "Response tokens."});
  v.field(4, "reward", m.reward, {.doc = "Reward."});
}
template <class V>
void describe(V& v, CountedTrain& m) {
  v.field(1, "lease", m.lease, {.doc = "Lease of this work."});
  v.field(2, "certificate", m.certificate, {.doc = "Versions and bound of the batch."});
  v.field(3, "items", m.items, {.doc = "Responses of the batch."});
}

/// Compute the gradients of groups that the next update will hold, and keep them: counted.train
/// then names these groups, whose gradients count as done.
struct CountedPrepare {
  static constexpr std::string_view kName = "counted.prepare";
  static constexpr std::uint32_t kTag = 86, kVersion = 1, kOldestVersion = 1;
  LeaseId lease;
  PolicyVersion step;
  std::vector<CountedTrain::Item> items;
};
template <class V>
void describe(V& v, CountedPrepare& m) {
  v.field(1, "lease", m.lease, {.doc = "Lease of this work."});
  v.field(2, "step", m.step, {.doc = "Version that is updated."});
  v.field(3, "items", m.items, {.doc = "Responses of the groups."});
}
struct CountedPrepared {
  static constexpr std::string_view kName = "counted.prepared";
  static constexpr std::uint32_t kTag = 87, kVersion = 1, kOldestVersion = 1;
  LeaseId lease;
};
template <class V>
void describe(V& v, CountedPrepared& m) {
  v.field(1, "lease", m.lease, {.doc = "Lease of the work."});
}

}  // namespace actors
}  // namespace temper
