// A role that owns the clock it reads.
#pragma once

#include "actors/runtime/role.hpp"
#include "core/clock.hpp"

#include <utility>

namespace temper::actors {

/// The constructor of `R` takes the clock as its last argument.
template <class R>
class WithClock final : public Role {
 public:
  template <class... Args>
  explicit WithClock(const RealClock& clock, Args&&... args)
      : clock_(clock), role_(std::forward<Args>(args)..., clock_) {}
  Status start(Outbox& out) override { return role_.start(out); }
  Status on_message(const IncomingMessage& m, Outbox& out) override {
    return role_.on_message(m, out);
  }
  Result<Work> work(Outbox& out) override { return role_.work(out); }
  Status stop(Outbox& out) override { return role_.stop(out); }
  bool rejoin(const Welcome& welcome) override {
    clock_ = RealClock(welcome.epoch_monotonic_ns);
    return role_.rejoin(welcome);
  }

 private:
  RealClock clock_;
  R role_;
};

}  // namespace temper::actors
