#include "orchestrator/run/live/fault_player.hpp"

#include "actors/asio/asio.hpp"

#include <algorithm>
#include <csignal>
#include <map>
#include <utility>

namespace temper::orchestrator {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

/// In which a slow process works; so many times as long it stands after it.
constexpr Duration kSlice = 5ms;

}  // namespace

struct FaultPlayer::Impl {
  struct Slow {
    Time until{};
    std::int64_t times = 1;
  };

  Impl(asio::io_context& io,
       const ResolvedPipeline& pipeline,
       FaultPlan faults,
       Hands can,
       const Log& to)
      : config(pipeline.config.simulation.faults),
        actors(pipeline.slots),
        plan(std::move(faults)),
        hosts(config, cluster_shape(pipeline)),
        hands(std::move(can)),
        log(to),
        timer(io),
        slices(io) {}

  // --- What is due

  /// The next instant at which anything is; none: nothing any more.
  std::optional<Time> next() const {
    std::optional<Time> next = plan.next();
    for (const auto* times : {&put_off, &stands_until, &cut_until}) {
      for (const auto& [actor, at] : *times)
        next = std::min(next.value_or(Time::max()), at);
    }
    return next;
  }

  void arm() {
    const std::optional<Time> at = next();
    if (!at)
      return;
    timer.expires_after(std::max(Duration(0), *at - hands.now()));
    timer.async_wait([this](const auto& error) {
      if (error)
        return;
      go_on();
      arm();
    });
  }

  void go_on() {
    const Time now = hands.now();
    while (plan.next() && *plan.next() <= now)
      play(plan.take());
    for (const ActorId actor : take_due(stands_until, now))
      hands.signal(actor, SIGCONT);
    for (const ActorId actor : take_due(cut_until, now))
      hands.mend(actor);
    for (const ActorId actor : take_due(put_off, now)) {
      // What failed since then may have put it off again.
      if (!put_off_until_usable(actor, now))
        hands.start(actor);
    }
  }

  static std::vector<ActorId> take_due(std::map<ActorId, Time>& times, Time now) {
    std::vector<ActorId> due;
    for (const auto& [actor, at] : times) {
      if (at <= now)
        due.push_back(actor);
    }
    for (const ActorId actor : due)
      times.erase(actor);
    return due;
  }

  bool put_off_until_usable(ActorId actor, Time now) {
    const Time from = hosts.usable_from(actors[actor.value()].cards);
    if (from <= now)
      return false;
    put_off[actor] = from;
    return true;
  }

  // --- What fails

  void play(const Fault& fault) {
    const std::set<CardId> failed = hosts.fail(fault);
    log.warning("planned failure", {{"what", describe_fault(fault)}});
    const CardId card(static_cast<std::uint32_t>(fault.index));
    const Time now = hands.now();
    switch (fault.kind) {
      case FaultKind::Card:
      case FaultKind::Host:
      case FaultKind::Supernode:
        for (const ActorId actor : on_cards(actors, failed))
          hands.signal(actor, SIGKILL);
        return;
      case FaultKind::Link:
        for (const ActorId actor : on_cards(actors, failed))
          cut_until[actor] = now + config.link_repair;
        return;
      case FaultKind::Stop:
        for (const ActorId actor : on_cards(actors, {card})) {
          hands.signal(actor, SIGSTOP);
          stands_until[actor] = std::max(stands_until[actor], now + fault.length);
        }
        return;
      case FaultKind::Slow:
        for (const ActorId actor : on_cards(actors, {card}))
          slow[actor] = {now + fault.length, fault.times};
        return take_turn(true);
    }
  }

  /// Slow processes work for a slice, then stand for as many as they are slower.
  void take_turn(bool works) {
    const Time now = hands.now();
    std::int64_t times = 1;
    for (auto it = slow.begin(); it != slow.end();) {
      const bool over = it->second.until <= now;
      if (!stands_until.contains(it->first))
        hands.signal(it->first, works || over ? SIGCONT : SIGSTOP);
      times = std::max(times, it->second.times);
      it = over ? slow.erase(it) : std::next(it);
    }
    if (slow.empty())
      return;
    slices.expires_after(works ? kSlice : kSlice * (times - 1));
    slices.async_wait([this, works](const auto& error) {
      if (!error)
        take_turn(!works);
    });
  }

  const actors::FaultConfig config;
  const std::vector<ActorSpec> actors;
  FaultPlan plan;
  HostPool hosts;
  const Hands hands;
  const Log log;
  asio::steady_timer timer, slices;
  std::map<ActorId, Time> put_off, stands_until, cut_until;
  std::map<ActorId, Slow> slow;
};

FaultPlayer::FaultPlayer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

FaultPlayer::~FaultPlayer() = default;

Result<std::unique_ptr<FaultPlayer>> FaultPlayer::create(asio::io_context& io,
                                                         const ResolvedPipeline& pipeline,
                                                         Hands hands,
                                                         const Log& log) {
  TEMPER_TRY(auto plan, FaultPlan::of(pipeline));
  if (!plan)
    return std::unique_ptr<FaultPlayer>();
  return std::unique_ptr<FaultPlayer>(new FaultPlayer(
      std::make_unique<Impl>(io, pipeline, *std::move(plan), std::move(hands), log)));
}

void FaultPlayer::begin() {
  const Time now = impl_->hands.now();
  while (impl_->plan.next() && *impl_->plan.next() < now)
    impl_->hosts.fail(impl_->plan.take());
  impl_->arm();
}

void FaultPlayer::end() {
  impl_->timer.cancel();
  impl_->slices.cancel();
  for (const auto& [actor, until] : std::exchange(impl_->stands_until, {}))
    impl_->hands.signal(actor, SIGCONT);
  for (const auto& [actor, slow] : std::exchange(impl_->slow, {}))
    impl_->hands.signal(actor, SIGCONT);
  for (const auto& [actor, until] : std::exchange(impl_->cut_until, {}))
    impl_->hands.mend(actor);
  impl_->put_off.clear();
}

bool FaultPlayer::puts_off(ActorId actor) {
  impl_->stands_until.erase(actor);  // who comes in its place does not stand
  if (!impl_->put_off_until_usable(actor, impl_->hands.now()))
    return false;
  impl_->arm();
  return true;
}

void FaultPlayer::drop(ActorId actor) {
  impl_->put_off.erase(actor);
}

bool FaultPlayer::is_cut(ActorId actor) const {
  return impl_->cut_until.contains(actor);
}

}  // namespace temper::orchestrator
