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

/// A slow process works for one slice and then stops for several.
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
       Effects can,
       const Log& to)
      : config(pipeline.config.simulation.faults),
        actors(pipeline.slots),
        plan(std::move(faults)),
        hosts(config, cluster_shape(pipeline)),
        effects(std::move(can)),
        log(to),
        timer(io),
        slices(io) {}

  // --- Timers

  /// When something is due next; nullopt: nothing any more.
  std::optional<Time> next() const {
    std::optional<Time> next = plan.next();
    for (const auto* times : {&put_off, &stopped_until, &cut_until}) {
      for (const auto& [actor, at] : *times)
        next = std::min(next.value_or(Time::max()), at);
    }
    return next;
  }

  void arm() {
    const std::optional<Time> at = next();
    if (!at)
      return;
    timer.expires_after(std::max(Duration(0), *at - effects.now()));
    timer.async_wait([this](const auto& error) {
      if (error)
        return;
      act();
      arm();
    });
  }

  void act() {
    const Time now = effects.now();
    while (plan.next() && *plan.next() <= now)
      play(plan.take());
    for (const ActorId actor : take_due(stopped_until, now))
      effects.signal(actor, SIGCONT);
    for (const ActorId actor : take_due(cut_until, now))
      effects.mend(actor);
    for (const ActorId actor : take_due(put_off, now)) {
      // A later failure may have put it off again.
      if (!put_off_until_usable(actor, now))
        effects.start(actor);
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

  // --- Failures

  void play(const Fault& fault) {
    const std::set<CardId> failed = hosts.fail(fault);
    log.warning("planned failure", {{"what", describe_fault(fault)}});
    const CardId card(static_cast<std::uint32_t>(fault.index));
    const Time now = effects.now();
    switch (fault.kind) {
      case FaultKind::Card:
      case FaultKind::Host:
      case FaultKind::Supernode:
        for (const ActorId actor : on_cards(actors, failed))
          effects.signal(actor, SIGKILL);
        return;
      case FaultKind::Link:
        for (const ActorId actor : on_cards(actors, failed))
          cut_until[actor] = now + config.link_repair;
        return;
      case FaultKind::Stop:
        for (const ActorId actor : on_cards(actors, {card})) {
          effects.signal(actor, SIGSTOP);
          stopped_until[actor] = std::max(stopped_until[actor], now + fault.length);
        }
        return;
      case FaultKind::Slow:
        for (const ActorId actor : on_cards(actors, {card}))
          slow[actor] = {now + fault.length, fault.times};
        return alternate(true);
    }
  }

  /// Slow processes work for one slice, then stop for `times - 1` slices.
  void alternate(bool works) {
    const Time now = effects.now();
    std::int64_t times = 1;
    for (auto it = slow.begin(); it != slow.end();) {
      const bool over = it->second.until <= now;
      if (!stopped_until.contains(it->first))
        effects.signal(it->first, works || over ? SIGCONT : SIGSTOP);
      times = std::max(times, it->second.times);
      it = over ? slow.erase(it) : std::next(it);
    }
    if (slow.empty())
      return;
    slices.expires_after(works ? kSlice : kSlice * (times - 1));
    slices.async_wait([this, works](const auto& error) {
      if (!error)
        alternate(!works);
    });
  }

  const actors::FaultConfig config;
  const std::vector<ActorSpec> actors;
  FaultPlan plan;
  HostPool hosts;
  const Effects effects;
  const Log log;
  asio::steady_timer timer, slices;
  std::map<ActorId, Time> put_off, stopped_until, cut_until;
  std::map<ActorId, Slow> slow;
};

FaultPlayer::FaultPlayer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

FaultPlayer::~FaultPlayer() = default;

Result<std::unique_ptr<FaultPlayer>> FaultPlayer::create(asio::io_context& io,
                                                         const ResolvedPipeline& pipeline,
                                                         Effects effects,
                                                         const Log& log) {
  TEMPER_TRY(auto plan, FaultPlan::of(pipeline));
  if (!plan)
    return std::unique_ptr<FaultPlayer>();
  return std::unique_ptr<FaultPlayer>(new FaultPlayer(
      std::make_unique<Impl>(io, pipeline, *std::move(plan), std::move(effects), log)));
}

void FaultPlayer::begin() {
  const Time now = impl_->effects.now();
  while (impl_->plan.next() && *impl_->plan.next() < now)
    impl_->hosts.fail(impl_->plan.take());
  impl_->arm();
}

void FaultPlayer::end() {
  impl_->timer.cancel();
  impl_->slices.cancel();
  for (const auto& [actor, until] : std::exchange(impl_->stopped_until, {}))
    impl_->effects.signal(actor, SIGCONT);
  for (const auto& [actor, slow] : std::exchange(impl_->slow, {}))
    impl_->effects.signal(actor, SIGCONT);
  for (const auto& [actor, until] : std::exchange(impl_->cut_until, {}))
    impl_->effects.mend(actor);
  impl_->put_off.clear();
}

bool FaultPlayer::puts_off(ActorId actor) {
  impl_->stopped_until.erase(actor);  // its successor is not stopped
  if (!impl_->put_off_until_usable(actor, impl_->effects.now()))
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
