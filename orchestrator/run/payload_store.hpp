// Tokens, log-probs and texts of outstanding groups: what the scheduler decides about but never
// sees.
#pragma once

#include "actors/protocol/work.hpp"
#include "actors/task/prompts.hpp"
#include "actors/task/tokenizer.hpp"
#include "core/describe.hpp"

#include <map>
#include <string>
#include <vector>

namespace temper::orchestrator {

struct ResponsePayload {
  actors::TokenBlob tokens;
  actors::LogprobBlob logprobs;
  actors::LogprobBlob reference;
  double reward = 0;
  PolicyVersion first_version;
};

struct GroupPayload {
  std::string prompt;
  std::string answer;
  actors::TokenBlob prompt_tokens;
  std::vector<ResponsePayload> responses;
};

template <class V>
void describe(V& v, ResponsePayload& p) {
  v.field(1, "tokens", p.tokens);
  v.field(2, "logprobs", p.logprobs);
  v.field(3, "reference", p.reference);
  v.field(4, "reward", p.reward);
  v.field(5, "first_version", p.first_version);
}
template <class V>
void describe(V& v, GroupPayload& p) {
  v.field(1, "prompt", p.prompt);
  v.field(2, "answer", p.answer);
  v.field(3, "prompt_tokens", p.prompt_tokens);
  v.field(4, "responses", p.responses);
}

class PayloadStore {
 public:
  explicit PayloadStore(std::int32_t responses_per_group)
      : per_group_(static_cast<std::uint64_t>(responses_per_group)) {}

  bool has(GroupId group) const { return groups_.contains(group); }
  /// Error: the prompt holds a character that the tokenizer does not know.
  Status add(GroupId group, const actors::Problem& problem, const actors::Tokenizer& tokenizer);
  void remove(GroupId group) { groups_.erase(group); }

  /// Requires: the group is here.
  const GroupPayload& group(GroupId group) const { return groups_.at(group); }
  const GroupPayload& group_of(ResponseId r) const { return groups_.at(group_id(r)); }
  ResponsePayload& response(ResponseId r);
  GroupId group_id(ResponseId r) const { return GroupId(r.value() / per_group_); }

  /// All payloads, to be stored with a checkpoint.
  const std::map<GroupId, GroupPayload>& all() const { return groups_; }
  void restore(std::map<GroupId, GroupPayload> groups) { groups_ = std::move(groups); }

 private:
  std::uint64_t per_group_;
  std::map<GroupId, GroupPayload> groups_;
};

}  // namespace temper::orchestrator
