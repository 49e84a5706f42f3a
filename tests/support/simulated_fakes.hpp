// Actors of simulated hardware whose times are plain: what they do can be told by hand. For
// drivers.
#pragma once

#include "actors/protocol/catalog.hpp"
#include "actors/protocol/role_config.hpp"
#include "actors/simulation/simulated_actor.hpp"

#include <map>
#include <memory>
#include <set>

namespace temper::orchestrator::testing {

/// What is due when, in the order of time and then of adding.
class Agenda {
 public:
  void add(Time due, std::function<void(actors::Outbox&)> what) {
    due_.emplace(std::pair(due, next_++), std::move(what));
  }
  void run(Time now, actors::Outbox& out) {
    while (!due_.empty() && due_.begin()->first.first <= now) {
      const auto what = std::move(due_.begin()->second);
      due_.erase(due_.begin());
      what(out);
    }
  }
  std::optional<Time> next() const {
    return due_.empty() ? std::nullopt : std::optional(due_.begin()->first.first);
  }

 private:
  std::map<std::pair<Time, std::uint64_t>, std::function<void(actors::Outbox&)>> due_;
  std::uint64_t next_ = 0;
};

/// Answers everything after a fixed time; a response r has 100 + (r * 7919) % 900 tokens of 1 ms.
class FakeActor final : public actors::SimulatedActor {
 public:
  explicit FakeActor(actors::RoleKind kind) : kind_(kind) {}

  /// Swallows this many pieces of work from the first one on.
  void swallow(int pieces) { swallow_ = pieces; }

  Status start(Time now, actors::Outbox&) override {
    agenda_.add(now + kStart, [this](actors::Outbox& out) {
      if (kind_ == actors::RoleKind::Trainer) {
        out.send(actors::TrainerReady{{PolicyVersion(0), Bytes(1000)}});
      } else {
        out.send(actors::Ready{});
      }
    });
    return {};
  }

  Status on_message(const actors::IncomingMessage& m, Time now, actors::Outbox& out) override {
    if (m.is<actors::CountedGenerate>()) {
      TEMPER_TRY(const auto work, m.decode<actors::CountedGenerate>());
      generate(work, now);
    } else if (m.is<actors::CountedScore>()) {
      TEMPER_TRY(const auto work, m.decode<actors::CountedScore>());
      busy(now, kScore, actors::CardState::Reference, actors::CountedScored{work.lease});
    } else if (m.is<actors::CountedJudge>()) {
      TEMPER_TRY(const auto work, m.decode<actors::CountedJudge>());
      actors::Judged judged{work.lease, {}};
      for (const auto& item : work.items)
        judged.items.push_back({static_cast<double>(item.response.value() % 2), ""});
      busy(now, kScore, actors::CardState::Reward, judged);
    } else if (m.is<actors::CountedTrain>()) {
      TEMPER_TRY(const auto work, m.decode<actors::CountedTrain>());
      actors::Trained trained;
      trained.lease = work.lease;
      for (const auto& entry : work.certificate.groups)
        trained.groups.push_back(entry.group);
      for (const auto& item : work.items)
        trained.metrics.tokens += item.prompt + item.response;
      trained.metrics.micro_batches = 1;
      trained.weights = {next(work.certificate.step), Bytes(1000)};
      busy(now, kTrain, actors::CardState::Train, trained);
    } else if (m.is<actors::SaveState>()) {
      TEMPER_TRY(const auto save, m.decode<actors::SaveState>());
      out.send(actors::StateSaved{save.version, ""});
    } else if (m.is<actors::StageWeights>()) {
      TEMPER_TRY(const auto stage, m.decode<actors::StageWeights>());
      later(now, kStage, actors::WeightsStaged{stage.weights.version, ""});
    } else if (m.is<actors::CommitWeights>()) {
      TEMPER_TRY(const auto commit, m.decode<actors::CommitWeights>());
      version_ = commit.version;
      out.send(actors::WeightsCommitted{commit.version, ""});
    } else if (m.is<actors::Switch>()) {
      TEMPER_TRY(const auto action, m.decode<actors::Switch>());
      actors::Switched switched;
      switched.action = action.action;
      out.send(switched);
    }
    return {};
  }

  Status advance(Time now, actors::Outbox& out) override {
    agenda_.run(now, out);
    return {};
  }
  std::optional<Time> next_event() const override { return agenda_.next(); }

 private:
  static constexpr Duration kStart = std::chrono::seconds(2), kScore = std::chrono::seconds(1),
                            kTrain = std::chrono::seconds(3),
                            kStage = std::chrono::milliseconds(700);

  template <class M>
  void later(Time now, Duration after, const M& answer) {
    if (swallow_ > 0) {
      --swallow_;
      return;
    }
    agenda_.add(now + after, [answer](actors::Outbox& out) { out.send(answer); });
  }
  /// One after the other.
  template <class M>
  void busy(Time now, Duration length, actors::CardState state, const M& answer) {
    const Time begin = std::max(now, free_);
    free_ = begin + length;
    const actors::Activity activity{{{state, begin, free_}}};
    agenda_.add(free_, [activity](actors::Outbox& out) { out.send(activity); });
    later(begin, length, answer);
  }
  void generate(const actors::CountedGenerate& work, Time now) {
    for (const auto& item : work.items) {
      const Tokens tokens(static_cast<std::int64_t>(100 + item.response.value() * 7919 % 900));
      actors::CountedGenerated made;
      made.items.push_back({work.lease,
                            item.response,
                            Tokens(50),
                            tokens,
                            {{version_, tokens}},
                            actors::FinishReason::End});
      later(now, std::chrono::milliseconds(tokens.count()), made);
    }
  }

  const actors::RoleKind kind_;
  int swallow_ = 0;
  PolicyVersion version_;
  Time free_{};
  Agenda agenda_;
};

}  // namespace temper::orchestrator::testing
