#include "actors/roles/reference_role.hpp"

#include "actors/protocol/work.hpp"

namespace temper::actors {

Status ReferenceRole::on_message(const IncomingMessage& message, Outbox& out) {
  if (!message.is<ScoreReference>())
    return {};
  TEMPER_TRY(ScoreReference work, message.decode<ScoreReference>());
  const Time begin = activity_.now();
  std::vector<ScoringRequest> requests;
  requests.reserve(work.items.size());
  for (auto& item : work.items) {
    requests.push_back({std::move(item.prompt), std::move(item.response)});
  }
  TEMPER_TRY(auto logprobs, engine_->score(requests));
  activity_.add(CardState::Reference, begin);
  out.send(ReferenceScored{work.lease, std::move(logprobs)});
  return {};
}

Result<Role::Work> ReferenceRole::work(Outbox& out) {
  activity_.report(out);
  return Work::None;
}

Status ReferenceRole::stop(Outbox& out) {
  activity_.flush(out);
  return {};
}

}  // namespace temper::actors
