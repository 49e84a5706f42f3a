#include "study/faults/timed_actor.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace temper::study {
namespace {

template <class Map, class Key>
double of(const Map& map, const Key& key) {
  const auto it = map.find(key);
  return it == map.end() ? 0.0 : it->second;
}

Tokens tokens(double mean) {
  return Tokens(std::max<std::int64_t>(1, std::llround(mean)));
}

actors::WeightsHandle weights(PolicyVersion version) {
  actors::WeightsHandle handle;
  handle.version = version;
  handle.bytes = Bytes(1);
  return handle;
}

}  // namespace

void TimedActor::schedule_reply(Time at, Reply reply) {
  const auto place = std::ranges::upper_bound(due_, at, {}, &ScheduledReply::at);
  due_.insert(place, {at, std::move(reply)});
}

void TimedActor::reply_after_work(Time now, double takes, Reply reply) {
  free_ = std::max(free_, now) + from_seconds(takes);
  schedule_reply(free_, std::move(reply));
}

double TimedActor::response_seconds() const {
  return of(times_->response, role_);
}

Status TimedActor::start(Time now, actors::Outbox&) {
  reply_after_work(now, of(times_->start, role_), [this](actors::Outbox& out) {
    if (role_ == actors::RoleKind::Trainer)
      out.send(actors::TrainerReady{weights(version_)});
    else
      out.send(actors::Ready{});
  });
  return {};
}

Status TimedActor::on_message(const actors::IncomingMessage& message,
                              Time now,
                              actors::Outbox& out) {
  const auto taken = actors::dispatch(
      message,
      [&](const actors::CountedGenerate& work) { generate(work, now); },
      [&](const actors::Cancel& work) {
        for (const ResponseId r : work.responses)
          open_.erase(r);
      },
      [&](const actors::Withdraw& work) { hand_back(work.responses, out); },
      [&](const actors::CountedScore& work) {
        reply_after_work(
            now,
            response_seconds() * static_cast<double>(work.lengths.size()),
            [lease = work.lease](actors::Outbox& o) { o.send(actors::CountedScored{lease}); });
      },
      [&](const actors::CountedJudge& work) {
        actors::Judged judged{work.lease, {}};
        for (const auto& item : work.items)
          judged.items.push_back({static_cast<double>(item.response.value() % 2), {}});
        reply_after_work(now,
                         response_seconds() * static_cast<double>(work.items.size()),
                         [judged](actors::Outbox& o) { o.send(judged); });
      },
      [&](const actors::CountedTrain& work) { train(work, now); },
      [&](const actors::SaveState& work) {
        reply_after_work(now, times_->save, [version = work.version](actors::Outbox& o) {
          o.send(actors::StateSaved{version, {}});
        });
      },
      [&](const actors::StageWeights& work) {
        reply_after(now, times_->stage, [version = work.weights.version](actors::Outbox& o) {
          o.send(actors::WeightsStaged{version, {}});
        });
      },
      [&](const actors::CommitWeights& work) {
        reply_after(now, times_->commit, [this, version = work.version](actors::Outbox& o) {
          version_ = version;
          o.send(actors::WeightsCommitted{version, {}});
        });
      },
      [&](const actors::Switch& work) { switch_role(work, now); },
      [](const actors::Stop&) {});
  return taken ? *taken : Status();
}

void TimedActor::generate(const actors::CountedGenerate& work, Time now) {
  for (const auto& item : work.items) {
    open_[item.response] = work.lease;
    reply_after_work(
        now, response_seconds(), [this, lease = work.lease, item](actors::Outbox& out) {
          const auto it = open_.find(item.response);
          if (it == open_.end() || it->second != lease)
            return;  // canceled or withdrawn
          open_.erase(it);
          const Tokens made = tokens(times_->response_tokens);
          actors::CountedGenerated done;
          done.items.push_back({lease,
                                item.response,
                                tokens(times_->prompt_tokens),
                                made,
                                {{version_, made}},
                                actors::FinishReason::Length});
          out.send(done);
        });
  }
}

void TimedActor::hand_back(const std::vector<ResponseId>& responses, actors::Outbox& out) {
  actors::CountedGenerated back;
  for (const ResponseId r : responses) {
    const auto node = open_.extract(r);
    if (!node.empty()) {
      back.items.push_back({node.mapped(),
                            r,
                            tokens(times_->prompt_tokens),
                            Tokens(0),
                            {},
                            actors::FinishReason::Interrupted});
    }
  }
  if (!back.items.empty())
    out.send(back);
}

void TimedActor::train(const actors::CountedTrain& work, Time now) {
  actors::Trained trained;
  trained.lease = work.lease;
  for (const auto& entry : work.certificate.groups)
    trained.groups.push_back(entry.group);
  for (const auto& item : work.items)
    trained.metrics.tokens += item.prompt + item.response;
  reply_after_work(now, times_->update, [this, trained](actors::Outbox& out) mutable {
    version_ = next(version_);
    trained.weights = weights(version_);
    out.send(trained);
  });
}

void TimedActor::switch_role(const actors::Switch& work, Time now) {
  reply_after_work(
      now, of(times_->switching, work.action), [this, action = work.action](actors::Outbox& out) {
        if (action == actors::SwitchAction::Interrupt) {
          std::vector<ResponseId> all;
          for (const auto& [response, lease] : open_)
            all.push_back(response);
          hand_back(all, out);
        }
        actors::Switched done;
        done.action = action;
        done.cost.duration = from_seconds(of(times_->switching, action));
        out.send(done);
      });
}

Status TimedActor::advance(Time now, actors::Outbox& out) {
  while (!due_.empty() && due_.front().at <= now) {
    const Reply reply = std::move(due_.front().reply);
    due_.erase(due_.begin());
    reply(out);
  }
  return {};
}

std::optional<Time> TimedActor::next_event() const {
  return due_.empty() ? std::nullopt : std::optional(due_.front().at);
}

}  // namespace temper::study
