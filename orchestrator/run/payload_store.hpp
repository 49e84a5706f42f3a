// Tokens, log-probs and texts of outstanding groups. The scheduler decides about groups but never
// sees these.
#pragma once

#include "actors/protocol/work.hpp"
#include "actors/task/prompts.hpp"
#include "actors/task/tokenizer.hpp"
#include "core/describe.hpp"
#include "orchestrator/scheduler/queue/response_ids.hpp"

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace temper::orchestrator {

struct ResponsePayload {
  actors::TokenBlob tokens;
  actors::LogprobBlob logprobs;
  actors::LogprobBlob reference;
  std::optional<double> reward;  ///< None: not judged.
  PolicyVersion first_version;
  std::vector<actors::Segment> segments;
  actors::MaskBlob mask;              ///< Empty: every token was sampled.
  actors::LogprobBlob token_rewards;  ///< Empty: none.
  std::string failure;                ///< The reason if it failed, else empty.
  std::vector<actors::Tensor> tensors{};
  std::map<std::string, double> terms{};   ///< Reward of each term of the verifier; empty: no sum.
  std::optional<actors::TopTokens> top{};  ///< Of the reference; none unless the run asks for them.
};

struct GroupPayload {
  std::string prompt;
  std::string answer;
  actors::TokenBlob prompt_tokens;
  std::vector<ResponsePayload> responses;
  std::string columns;
  std::string source{};  ///< Key of `task.sources`; empty: the only source.
};

void describe(auto& v, ResponsePayload& p) {
  v.field(1, "tokens", p.tokens);
  v.field(2, "logprobs", p.logprobs);
  v.field(3, "reference", p.reference);
  v.field(4, "reward", p.reward);
  v.field(5, "first_version", p.first_version);
  v.field(6, "segments", p.segments);
  v.field(7, "mask", p.mask);
  v.field(8, "token_rewards", p.token_rewards);
  v.field(9, "failure", p.failure);
  v.field(10, "tensors", p.tensors);
  v.field(11, "terms", p.terms);
  v.field(12, "top", p.top, {.left_out_if_empty = true});
}
void describe(auto& v, GroupPayload& p) {
  v.field(1, "prompt", p.prompt);
  v.field(2, "answer", p.answer);
  v.field(3, "prompt_tokens", p.prompt_tokens);
  v.field(4, "responses", p.responses);
  v.field(5, "columns", p.columns);
  v.field(6, "source", p.source);
}

class PayloadStore {
 public:
  explicit PayloadStore(std::int32_t responses_per_group) : ids_(responses_per_group) {}

  bool has(GroupId group) const { return groups_.contains(group); }
  /// Error: the prompt holds a character that the tokenizer does not know.
  Status add(GroupId group, const actors::Problem& problem, const actors::Tokenizer& tokenizer);
  void remove(GroupId group) { groups_.erase(group); }

  /// Requires: the group is here.
  const GroupPayload& group(GroupId group) const { return groups_.at(group); }
  const GroupPayload& group_of(ResponseId r) const { return groups_.at(group_id(r)); }
  ResponsePayload& response(ResponseId r) {
    return groups_.at(group_id(r)).responses[ids_.place_of(r)];
  }
  const ResponsePayload& response(ResponseId r) const {
    return groups_.at(group_id(r)).responses[ids_.place_of(r)];
  }
  GroupId group_id(ResponseId r) const { return ids_.group_of(r); }

  // --- Messages to actors, with payloads. Requires: all groups are here.
  /// Responses of one group, each continued from its tokens so far.
  actors::Generate generate(LeaseId lease,
                            GroupId group,
                            std::span<const ResponseId> responses) const;
  actors::ScoreReference score(LeaseId lease, std::span<const ResponseId> responses) const;
  actors::Judge judge(LeaseId lease, std::span<const ResponseId> responses) const;
  /// To train.
  std::vector<actors::Train::Item> samples(std::span<const ResponseId> responses) const;

  /// All payloads, to be stored with a checkpoint.
  const std::map<GroupId, GroupPayload>& all() const { return groups_; }
  void restore(std::map<GroupId, GroupPayload> groups) { groups_ = std::move(groups); }

 private:
  ResponseIds ids_;
  std::map<GroupId, GroupPayload> groups_;
};

}  // namespace temper::orchestrator
