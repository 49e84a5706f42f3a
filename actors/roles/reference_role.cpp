#include "actors/roles/reference_role.hpp"

#include "actors/roles/switch_report.hpp"

namespace temper::actors {

Status ReferenceRole::on_message(const IncomingMessage& message, Outbox& out) {
  return dispatch(
             message,
             [&](ScoreReference work) { return score(std::move(work), out); },
             [&](const Switch& work) { switch_role(work, out); })
      .value_or(Status());
}

Status ReferenceRole::score(ScoreReference work, Outbox& out) {
  if (engine_ == nullptr)
    return invalid_input("cannot score: the reference weights are not on the cards");
  const Time begin = activity_.now();
  std::vector<ScoringRequest> requests;
  requests.reserve(work.items.size());
  for (auto& item : work.items) {
    requests.push_back({std::move(item.prompt), std::move(item.response)});
  }
  TEMPER_TRY(ReferenceScores scores, engine_->score(requests));
  activity_.add(CardState::Reference, begin);
  out.send(ReferenceScored{work.lease, std::move(scores.logprobs), std::move(scores.top)});
  return {};
}

void ReferenceRole::switch_role(const Switch& work, Outbox& out) {
  const auto held = [this] {
    return HeldMemory{engine_ == nullptr ? Bytes() : engine_->memory(), Bytes()};
  };
  perform_switch(work.action, activity_, out, held, [&] { return perform(work.action); });
}

Status ReferenceRole::perform(SwitchAction action) {
  if (action == SwitchAction::OffloadReference) {
    engine_.reset();
    return {};
  }
  if (action != SwitchAction::OnloadReference)
    return invalid_input("a reference actor does not support " + std::string(name_of(action)));
  if (engine_ == nullptr) {
    TEMPER_TRY(engine_, make_());
  }
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

bool ReferenceRole::rejoin(const Welcome&) {
  activity_.forget();
  return true;
}

}  // namespace temper::actors
