#include "actors/roles/reward_role.hpp"

namespace temper::actors {

Judged judge(Verifier& verifier, std::span<const JudgeRequest> batch) {
  Judged judged;
  const std::vector<std::string> names = verifier.terms();
  for (Verdict& verdict : verifier.judge(batch)) {
    for (std::size_t t = 0; t < names.size() && t < verdict.terms.size(); ++t)
      judged.terms[names[t]].push_back(verdict.terms[t]);
    judged.items.push_back({verdict.reward, std::move(verdict.failure)});
  }
  judged.gave_up = verifier.gave_up();
  return judged;
}

Status RewardRole::on_message(const IncomingMessage& message, Outbox& out) {
  if (!message.is<Judge>())
    return {};
  TEMPER_TRY(Judge work, message.decode<Judge>());
  const Time begin = activity_.now();
  std::vector<JudgeRequest> requests;
  requests.reserve(work.items.size());
  for (auto& item : work.items) {
    requests.push_back(
        {std::move(item.prompt), std::move(item.answer), tokenizer_.decode(item.response)});
  }
  Judged judged = judge(*verifier_, requests);
  judged.lease = work.lease;
  activity_.add(CardState::Reward, begin);
  out.send(judged);
  return {};
}

Result<Role::Work> RewardRole::work(Outbox& out) {
  activity_.report(out);
  return Work::None;
}

Status RewardRole::stop(Outbox& out) {
  activity_.flush(out);
  return {};
}

bool RewardRole::rejoin(const Welcome&) {
  activity_.forget();
  return true;
}

}  // namespace temper::actors
