// Messages for work on simulated hardware, where tokens are only counted: the messages of work.hpp
// with lengths in place of tokens. Weights and role switches use weights.hpp; virtual_time.hpp
// carries these messages.
#pragma once

#include "actors/protocol/envelope.hpp"
#include "actors/protocol/sample.hpp"
#include "actors/protocol/work.hpp"

#include <optional>

namespace temper {
namespace actors {

/// Where the KV cache of an interrupted response is: nowhere, at the engine that continues it, or
/// at another engine that handed it back.
enum class CachedAt { Nowhere, Here, Elsewhere };

}  // namespace actors

template <>
struct EnumNames<actors::CachedAt> {
  using C = actors::CachedAt;
  static constexpr std::array<std::pair<C, std::string_view>, 3> value{
      {{C::Nowhere, "nowhere"}, {C::Here, "here"}, {C::Elsewhere, "elsewhere"}}};
};

namespace actors {

/// Generate responses of one group. The engine decides their lengths.
struct CountedGenerate {
  static constexpr std::string_view kName = "counted.generate";
  static constexpr std::uint32_t kTag = 80, kVersion = 1, kOldestVersion = 1;
  struct Item {
    ResponseId response;
    Tokens prefix;  ///< Tokens from an interrupted attempt; they count toward the length.
    CachedAt cached = CachedAt::Nowhere;
    std::optional<Time> answered{};  ///< When the tool answers that was called at these tokens.
  };
  LeaseId lease;
  GroupId group;
  std::vector<Item> items;
};
void describe(auto& v, CountedGenerate::Item& m) {
  v.field(1, "response", m.response, {.doc = "Response."});
  v.field(2, "prefix", m.prefix, {.doc = "Tokens from interrupted attempts."});
  v.field(3, "cached", m.cached, {.doc = "Where the KV cache of those tokens is."});
  v.field(4,
          "answered",
          m.answered,
          {.doc = "When the tool answers that an interrupted attempt called after those tokens; "
                  "null: none has been called."});
}
void describe(auto& v, CountedGenerate& m) {
  v.field(1, "lease", m.lease, {.doc = "Lease of this work."});
  v.field(2, "group", m.group, {.doc = "Group; determines the length of the prompt."});
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
    bool cached = false;             ///< Interrupted, and the engine keeps its KV cache.
    std::optional<Time> answered{};  ///< Interrupted during a call: when its tool answers.
  };
  std::vector<Item> items;
};
void describe(auto& v, CountedGenerated::Item& m) {
  v.field(1, "lease", m.lease, {.doc = "Lease of the work."});
  v.field(2, "response", m.response, {.doc = "Response."});
  v.field(3, "prompt", m.prompt, {.doc = "Length of its prompt."});
  v.field(4, "tokens", m.tokens, {.doc = "Tokens sampled by this attempt."});
  v.field(5, "segments", m.segments, {.doc = "Consecutive tokens by policy version."});
  v.field(6, "finish", m.finish, {.doc = "Why it ended."});
  v.field(7, "cached", m.cached, {.doc = "Interrupted, and the engine keeps its KV cache."});
  v.field(8,
          "answered",
          m.answered,
          {.doc = "Interrupted during a tool call, which continues: when the tool answers."});
}
void describe(auto& v, CountedGenerated& m) {
  v.field(1, "items", m.items, {.doc = "Responses that ended."});
}

/// Score responses under the reference weights.
struct CountedScore {
  static constexpr std::string_view kName = "counted.score";
  static constexpr std::uint32_t kTag = 82, kVersion = 1, kOldestVersion = 1;
  LeaseId lease;
  std::vector<Tokens> lengths;  ///< Prompt and response tokens of each response.
  Tokens repeated;              ///< Tokens of prompts that are identical to the previous response's
                                ///< prompt.
};
void describe(auto& v, CountedScore& m) {
  v.field(1, "lease", m.lease, {.doc = "Lease of this work."});
  v.field(2, "lengths", m.lengths, {.doc = "Prompt and response tokens of each response."});
  v.field(3,
          "repeated",
          m.repeated,
          {.doc = "Of these, prompt tokens shared with the previous response."});
}
struct CountedScored {
  static constexpr std::string_view kName = "counted.scored";
  static constexpr std::uint32_t kTag = 83, kVersion = 1, kOldestVersion = 1;
  LeaseId lease;
};
void describe(auto& v, CountedScored& m) {
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
void describe(auto& v, CountedJudge::Item& m) {
  v.field(1, "response", m.response, {.doc = "Response; determines the reward."});
  v.field(2, "tokens", m.tokens, {.doc = "Length of the response."});
}
void describe(auto& v, CountedJudge& m) {
  v.field(1, "lease", m.lease, {.doc = "Lease of this work."});
  v.field(2, "items", m.items, {.doc = "Responses to judge."});
}

/// One optimizer step; answered by trainer.trained, whose weights have only a version and a size.
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
void describe(auto& v, CountedTrain::Item& m) {
  v.field(1, "group", m.group, {.doc = "Group."});
  v.field(2, "prompt", m.prompt, {.doc = "Prompt tokens."});
  v.field(3, "response", m.response, {.doc = "Response tokens."});
  v.field(4, "reward", m.reward, {.doc = "Reward."});
}
void describe(auto& v, CountedTrain& m) {
  v.field(1, "lease", m.lease, {.doc = "Lease of this work."});
  v.field(2, "certificate", m.certificate, {.doc = "Versions and bound of the batch."});
  v.field(3, "items", m.items, {.doc = "Responses of the batch."});
}

/// Compute the gradients of groups of the next step in advance. The following counted.train
/// includes these groups, and their gradients are not computed again.
struct CountedPrepare {
  static constexpr std::string_view kName = "counted.prepare";
  static constexpr std::uint32_t kTag = 86, kVersion = 1, kOldestVersion = 1;
  LeaseId lease;
  PolicyVersion step;
  std::vector<CountedTrain::Item> items;
};
void describe(auto& v, CountedPrepare& m) {
  v.field(1, "lease", m.lease, {.doc = "Lease of this work."});
  v.field(2, "step", m.step, {.doc = "Policy version being updated."});
  v.field(3, "items", m.items, {.doc = "Responses of the groups."});
}
struct CountedPrepared {
  static constexpr std::string_view kName = "counted.prepared";
  static constexpr std::uint32_t kTag = 87, kVersion = 1, kOldestVersion = 1;
  LeaseId lease;
};
void describe(auto& v, CountedPrepared& m) {
  v.field(1, "lease", m.lease, {.doc = "Lease of the work."});
}

/// The tensors of these responses (simulation.tensors) are no longer needed. Without answer.
struct CountedRelease {
  static constexpr std::string_view kName = "counted.release";
  static constexpr std::uint32_t kTag = 88, kVersion = 1, kOldestVersion = 1;
  enum class After { Trained, Dropped };
  std::vector<ResponseId> responses;
  After after = After::Trained;
};

}  // namespace actors

template <>
struct EnumNames<actors::CountedRelease::After> {
  using A = actors::CountedRelease::After;
  static constexpr std::array<std::pair<A, std::string_view>, 2> value{
      {{A::Trained, "trained"}, {A::Dropped, "dropped"}}};
};

namespace actors {

void describe(auto& v, CountedRelease& m) {
  v.field(1, "responses", m.responses, {.doc = "Responses that this engine ended."});
  v.field(2, "after", m.after, {.doc = "Whether they were trained."});
}

}  // namespace actors
}  // namespace temper
