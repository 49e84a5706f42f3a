// Messages for work: generation, reference log-probs, rewards, training, checkpoints. Each
// assignment has a lease and its results name it, so that a late result of work that was reassigned
// is recognized and dropped.
#pragma once

#include "actors/protocol/envelope.hpp"
#include "actors/protocol/judge_usage.hpp"
#include "actors/protocol/sample.hpp"
#include "actors/protocol/term_rewards.hpp"
#include "actors/protocol/top_tokens.hpp"

#include <optional>

namespace temper::actors {

using TokenBlob = std::vector<std::int32_t>;
using LogprobBlob = std::vector<float>;
using MaskBlob = std::vector<std::uint8_t>;

/// Generate responses to one prompt. Processed in order with weight commits.
struct Generate {
  static constexpr std::string_view kName = "rollout.generate";
  static constexpr std::uint32_t kTag = 20, kVersion = 1, kOldestVersion = 1;
  struct Item {
    ResponseId response;
    TokenBlob prefix;
  };
  LeaseId lease;
  TokenBlob prompt;
  std::vector<Item> items;
  bool greedy = false;
};
void describe(auto& v, Generate::Item& m) {
  v.field(1, "response", m.response, {.doc = "Which response."});
  v.field(2, "prefix", m.prefix, {.doc = "Tokens from an interrupted attempt."});
}
void describe(auto& v, Generate& m) {
  v.field(1, "lease", m.lease, {.doc = "Lease of this dispatch."});
  v.field(2, "prompt", m.prompt, {.doc = "Token ids, shared by the group."});
  v.field(3, "items", m.items, {.doc = "Responses to generate."});
  v.field(4, "greedy", m.greedy, {.doc = "Greedy decoding, whatever `sampling` says."});
}

/// Responses finished or interrupted since the last report.
struct Generated {
  static constexpr std::string_view kName = "rollout.generated";
  static constexpr std::uint32_t kTag = 21, kVersion = 1, kOldestVersion = 1;
  struct Item {
    LeaseId lease;
    ResponseId response;
    TokenBlob tokens;
    LogprobBlob logprobs;
    std::vector<Segment> segments;
    FinishReason finish = FinishReason::End;
    MaskBlob mask;          ///< Empty: every token was sampled by the policy.
    LogprobBlob rewards;    ///< Empty: no rewards besides that of the whole response.
    std::string failure{};  ///< Why it failed; empty if it did not fail or the reason is unknown.
    std::vector<Tensor> tensors{};
  };
  std::vector<Item> items;
};
void describe(auto& v, Generated::Item& m) {
  v.field(1, "lease", m.lease, {.doc = "Lease it was dispatched under."});
  v.field(2, "response", m.response, {.doc = "Which response."});
  v.field(3, "tokens", m.tokens, {.doc = "Token ids sampled by this attempt, without the prefix."});
  v.field(4, "logprobs", m.logprobs, {.doc = "Log-prob of each token as sampled."});
  v.field(5, "segments", m.segments, {.doc = "Consecutive tokens by policy version."});
  v.field(6, "finish", m.finish, {.doc = "Why it ended."});
  v.field(
      7,
      "mask",
      m.mask,
      {.doc = "Per token: 1 if the policy sampled it, 0 if it came from elsewhere (a tool, a user "
              "turn). A token with 0 has log-prob 0 and is not trained on. Empty: all 1."});
  v.field(
      8,
      "rewards",
      m.rewards,
      {.doc = "Per token: a reward assigned during generation (by an environment, at the end of a "
              "turn); empty: none. They are added to the reward of the whole response."});
  v.field(9, "failure", m.failure, {.doc = "Why it failed, if `finish` is `failed`."});
  v.field(10,
          "tensors",
          m.tensors,
          {.doc = "Arrays for the trainer, about the whole response. None if it was interrupted."});
}
void describe(auto& v, Generated& m) {
  v.field(1, "items", m.items, {.doc = "Responses."});
}

/// Cancel these responses. Their tokens so far may be reported as interrupted.
struct Cancel {
  static constexpr std::string_view kName = "rollout.cancel";
  static constexpr std::uint32_t kTag = 22, kVersion = 1, kOldestVersion = 1;
  std::vector<ResponseId> responses;
};
void describe(auto& v, Cancel& m) {
  v.field(1, "responses", m.responses, {.doc = "Responses that are no longer needed."});
}

/// Hand these responses back, interrupted, with their tokens so far; the others continue.
struct Withdraw {
  static constexpr std::string_view kName = "rollout.withdraw";
  static constexpr std::uint32_t kTag = 23, kVersion = 1, kOldestVersion = 1;
  std::vector<ResponseId> responses;
};
void describe(auto& v, Withdraw& m) {
  v.field(1, "responses", m.responses, {.doc = "Responses that continue on another engine."});
}

/// Score responses under the reference weights.
struct ScoreReference {
  static constexpr std::string_view kName = "reference.score";
  static constexpr std::uint32_t kTag = 30, kVersion = 1, kOldestVersion = 1;
  struct Item {
    TokenBlob prompt;
    TokenBlob response;
  };
  LeaseId lease;
  std::vector<Item> items;
};
void describe(auto& v, ScoreReference::Item& m) {
  v.field(1, "prompt", m.prompt, {.doc = "Prompt token ids."});
  v.field(2, "response", m.response, {.doc = "Response token ids."});
}
void describe(auto& v, ScoreReference& m) {
  v.field(1, "lease", m.lease, {.doc = "Lease of this batch."});
  v.field(2, "items", m.items, {.doc = "Responses to score."});
}

struct ReferenceScored {
  static constexpr std::string_view kName = "reference.scored";
  static constexpr std::uint32_t kTag = 31, kVersion = 1, kOldestVersion = 1;
  LeaseId lease;
  std::vector<LogprobBlob> logprobs;
  std::optional<std::vector<TopTokens>> top{};  ///< None unless the run asks for them.
};
void describe(auto& v, ReferenceScored& m) {
  v.field(1, "lease", m.lease, {.doc = "Lease of the batch."});
  v.field(2, "logprobs", m.logprobs, {.doc = "Per item, one log-prob per response token."});
  v.field(3,
          "top",
          m.top,
          {.doc = "Per item, the most likely tokens at each response token: "
                  "`algorithm.distillation_top_k` of them. Left out if that is 0.",
           .left_out_if_empty = true});
}

/// Judge responses.
struct Judge {
  static constexpr std::string_view kName = "reward.judge";
  static constexpr std::uint32_t kTag = 40, kVersion = 1, kOldestVersion = 1;
  struct Item {
    std::string prompt;
    std::string answer;
    TokenBlob response;
    std::string columns;  ///< JSON object; empty: none.
  };
  LeaseId lease;
  std::vector<Item> items;
};
void describe(auto& v, Judge::Item& m) {
  v.field(1, "prompt", m.prompt, {.doc = "Prompt text."});
  v.field(2, "answer", m.answer, {.doc = "Expected answer."});
  v.field(3, "response", m.response, {.doc = "Response token ids."});
  v.field(4,
          "columns",
          m.columns,
          {.doc = "Other columns of the prompt's row in its file, as a JSON object; or empty."});
}
void describe(auto& v, Judge& m) {
  v.field(1, "lease", m.lease, {.doc = "Lease of this batch."});
  v.field(2, "items", m.items, {.doc = "Responses to judge."});
}

struct Judged {
  static constexpr std::string_view kName = "reward.judged";
  static constexpr std::uint32_t kTag = 41, kVersion = 1, kOldestVersion = 1;
  struct Item {
    double reward = 0;
    std::string failure;
  };
  LeaseId lease;
  std::vector<Item> items;
  bool gave_up = false;
  TermRewards terms{};
  std::optional<JudgeUsage> usage{};
};
void describe(auto& v, Judged::Item& m) {
  v.field(1, "reward", m.reward, {.doc = "The reward, if judged."});
  v.field(2, "failure", m.failure, {.doc = "Why judging failed; empty if it succeeded."});
}
void describe(auto& v, Judged& m) {
  v.field(1, "lease", m.lease, {.doc = "Lease of the batch."});
  v.field(2, "items", m.items, {.doc = "One verdict per response, in order."});
  v.field(3,
          "gave_up",
          m.gave_up,
          {.doc = "The verifier has failed several times and given no reward since it was started. "
                  "Ends a run that has had no reward yet."});
  v.field(4,
          "terms",
          m.terms,
          {.doc = "Of a sum of verifiers: the reward of each term by name, before its weight, one "
                  "number per response; NaN where the term does not apply."});
  v.field(5, "usage", m.usage, {.doc = "Work of judges since the last message; nil: none."});
}

/// The staleness guarantee of a batch. The trainer checks it before the step, the auditor
/// afterwards.
struct Certificate {
  struct Entry {
    GroupId group;
    PolicyVersion dispatched;  ///< v0: version when the group's first token was dispatched.
    /// Version from which its age is counted; v0 if empty.
    std::optional<PolicyVersion> counted_from{};
    PolicyVersion age_from() const { return counted_from.value_or(dispatched); }
    bool operator==(const Entry&) const = default;
  };
  PolicyVersion step;  ///< T: the version being updated.
  std::uint64_t bound = 0;
  std::vector<Entry> groups;
};
void describe(auto& v, Certificate::Entry& c) {
  v.field(1, "group", c.group, {.doc = "Which group."});
  v.field(2,
          "dispatched",
          c.dispatched,
          {.doc = "v0: version when the group's first token was dispatched."});
  v.field(3,
          "counted_from",
          c.counted_from,
          {.doc = "Version from which its age is counted, if not v0: the mean version of its "
                  "tokens, rounded down."});
}
void describe(auto& v, Certificate& c) {
  v.field(1, "step", c.step, {.doc = "T: the policy version being updated."});
  v.field(2, "bound", c.bound, {.doc = "Largest allowed age, in versions."});
  v.field(3, "groups", c.groups, {.doc = "The groups of the batch."});
}

/// One optimizer step.
struct Train {
  static constexpr std::string_view kName = "trainer.train";
  static constexpr std::uint32_t kTag = 50, kVersion = 1, kOldestVersion = 1;
  struct Item {
    GroupId group;
    TokenBlob prompt;
    TokenBlob response;
    LogprobBlob logprobs;
    LogprobBlob reference;
    double reward = 0;
    PolicyVersion first_version;  ///< Version that sampled the first token.
    std::vector<Segment> segments;
    MaskBlob mask;        ///< As in Generated.
    LogprobBlob rewards;  ///< As in Generated.
    ResponseId id{};      ///< Which response; errors name it.
    std::vector<Tensor> tensors{};
    std::optional<TopTokens> top{};  ///< As in ReferenceScored.
  };
  LeaseId lease;
  Certificate certificate;
  std::vector<Item> items;
};
void describe(auto& v, Train::Item& m) {
  v.field(1, "group", m.group, {.doc = "Group of the response."});
  v.field(2, "prompt", m.prompt, {.doc = "Prompt token ids."});
  v.field(3, "response", m.response, {.doc = "Response token ids."});
  v.field(4, "logprobs", m.logprobs, {.doc = "Behavior log-probs, recorded at sampling."});
  v.field(5, "reference", m.reference, {.doc = "Reference log-probs; empty without a reference."});
  v.field(6, "reward", m.reward, {.doc = "Reward of the response."});
  v.field(7, "first_version", m.first_version, {.doc = "Policy version of its first token."});
  v.field(8, "segments", m.segments, {.doc = "Consecutive tokens by policy version."});
  v.field(9, "mask", m.mask, {.doc = "As in rollout.generated."});
  v.field(10, "rewards", m.rewards, {.doc = "As in rollout.generated."});
  v.field(11, "id", m.id, {.doc = "Which response; errors name it."});
  v.field(12, "tensors", m.tensors, {.doc = "Arrays that its engine attached."});
  v.field(13, "top", m.top, {.doc = "As in reference.scored.", .left_out_if_empty = true});
}
void describe(auto& v, Train& m) {
  v.field(1, "lease", m.lease, {.doc = "Lease of this update."});
  v.field(2, "certificate", m.certificate, {.doc = "Versions, ages and bound of the batch."});
  v.field(3, "items", m.items, {.doc = "Responses; those of a group are adjacent."});
}

/// Compute the gradients of groups of the next step in advance. The following trainer.train
/// includes these groups, and their gradients are not computed again.
struct Prepare {
  static constexpr std::string_view kName = "trainer.prepare";
  static constexpr std::uint32_t kTag = 55, kVersion = 1, kOldestVersion = 1;
  LeaseId lease;
  PolicyVersion step;
  std::vector<Train::Item> items;
};
void describe(auto& v, Prepare& m) {
  v.field(1, "lease", m.lease, {.doc = "Lease of this work."});
  v.field(2, "step", m.step, {.doc = "Policy version being updated."});
  v.field(3, "items", m.items, {.doc = "Responses; those of a group are adjacent."});
}
struct Prepared {
  static constexpr std::string_view kName = "trainer.prepared";
  static constexpr std::uint32_t kTag = 56, kVersion = 1, kOldestVersion = 1;
  LeaseId lease;
};
void describe(auto& v, Prepared& m) {
  v.field(1, "lease", m.lease, {.doc = "Lease of the work."});
}

/// Save the whole trainer state into a folder.
struct SaveState {
  static constexpr std::string_view kName = "trainer.save";
  static constexpr std::uint32_t kTag = 52, kVersion = 1, kOldestVersion = 1;
  PolicyVersion version;
  std::string folder;
};
void describe(auto& v, SaveState& m) {
  v.field(1, "version", m.version, {.doc = "Current version of the trainer."});
  v.field(2, "folder", m.folder, {.doc = "Existing folder to write into."});
}

struct StateSaved {
  static constexpr std::string_view kName = "trainer.saved";
  static constexpr std::uint32_t kTag = 53, kVersion = 1, kOldestVersion = 1;
  PolicyVersion version;
  std::string error;
};
void describe(auto& v, StateSaved& m) {
  v.field(1, "version", m.version, {.doc = "Version saved."});
  v.field(2, "error", m.error, {.doc = "Why saving failed; empty if it succeeded."});
}

}  // namespace temper::actors
