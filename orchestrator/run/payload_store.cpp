#include "orchestrator/run/payload_store.hpp"

#include <fmt/format.h>

namespace temper::orchestrator {

Status PayloadStore::add(GroupId group,
                         const actors::Problem& problem,
                         const actors::Tokenizer& tokenizer) {
  auto tokens = problem.tokens.empty() ? tokenizer.encode(problem.prompt)
                                       : Result<actors::TokenBlob>(problem.tokens);
  if (!tokens)
    return std::move(tokens).error().within(fmt::format("prompt of group {}", group));
  GroupPayload& payload = groups_[group];
  payload = {
      problem.prompt, problem.answer, *std::move(tokens), {}, problem.columns, problem.source};
  payload.responses.resize(ids_.per_group());
  return {};
}

actors::Generate PayloadStore::generate(LeaseId lease,
                                        GroupId group,
                                        std::span<const ResponseId> responses) const {
  actors::Generate message{lease, groups_.at(group).prompt_tokens, {}};
  message.items.reserve(responses.size());
  for (const ResponseId r : responses)
    message.items.push_back({r, response(r).tokens});
  return message;
}

actors::ScoreReference PayloadStore::score(LeaseId lease,
                                           std::span<const ResponseId> responses) const {
  actors::ScoreReference message{lease, {}};
  message.items.reserve(responses.size());
  for (const ResponseId r : responses)
    message.items.push_back({group_of(r).prompt_tokens, response(r).tokens});
  return message;
}

actors::Judge PayloadStore::judge(LeaseId lease, std::span<const ResponseId> responses) const {
  actors::Judge message{lease, {}};
  message.items.reserve(responses.size());
  for (const ResponseId r : responses) {
    const GroupPayload& group = group_of(r);
    message.items.push_back({group.prompt, group.answer, response(r).tokens, group.columns});
  }
  return message;
}

std::vector<actors::Train::Item> PayloadStore::samples(
    std::span<const ResponseId> responses) const {
  std::vector<actors::Train::Item> items;
  items.reserve(responses.size());
  for (const ResponseId r : responses) {
    const ResponsePayload& p = response(r);
    items.push_back({group_id(r),
                     group_of(r).prompt_tokens,
                     p.tokens,
                     p.logprobs,
                     p.reference,
                     p.reward.value_or(0),
                     p.first_version,
                     p.segments,
                     p.mask,
                     p.token_rewards,
                     r,
                     p.tensors,
                     p.top});
  }
  return items;
}

}  // namespace temper::orchestrator
