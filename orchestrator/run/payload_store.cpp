#include "orchestrator/run/payload_store.hpp"

#include <fmt/format.h>

namespace temper::orchestrator {

Status PayloadStore::add(GroupId group,
                         const actors::Problem& problem,
                         const actors::Tokenizer& tokenizer) {
  auto tokens = tokenizer.encode(problem.prompt);
  if (!tokens)
    return std::move(tokens).error().within(fmt::format("prompt of group {}", group));
  GroupPayload& payload = groups_[group];
  payload = {problem.prompt, problem.answer, *std::move(tokens), {}};
  payload.responses.resize(per_group_);
  return {};
}

ResponsePayload& PayloadStore::response(ResponseId r) {
  return groups_.at(group_id(r)).responses[r.value() % per_group_];
}

}  // namespace temper::orchestrator
