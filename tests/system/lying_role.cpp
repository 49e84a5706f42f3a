// In place of make_role of a temper-worker: the same role, behind a mouth that lies once per run.
// TEMPER_TEST_LIE names the lie, TEMPER_TEST_LIE_TOLD a file that says that it was told. "loading"
// is no lie: it takes three seconds to make the trainer, which no run can do without.
#include "actors/protocol/catalog.hpp"
#include "core/clock.hpp"
#include "orchestrator/worker/roles/role_factory.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>

namespace temper::orchestrator {

Result<std::unique_ptr<actors::Role>> make_lying_role(const actors::Welcome& welcome);

namespace {

constexpr PolicyVersion kFarAhead(std::uint64_t{1} << 40);

std::string setting(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// True for the first process that asks.
bool may_lie_now() {
  const int fd = ::open(setting("TEMPER_TEST_LIE_TOLD").c_str(), O_CREAT | O_EXCL | O_WRONLY, 0600);
  if (fd < 0)
    return false;
  ::close(fd);
  return true;
}

/// Uses the processor for so long.
void compute(Duration time) {
  const RealClock clock;
  while (clock.now() < Time(time))
    continue;
}

class LyingRole : public actors::Role {
 public:
  explicit LyingRole(std::unique_ptr<actors::Role> honest) : honest_(std::move(honest)) {}

  Status start(actors::Outbox& out) override {
    actors::Outbox mouth = mouth_to(out);
    return honest_->start(mouth);
  }
  Status on_message(const actors::IncomingMessage& message, actors::Outbox& out) override {
    actors::Outbox mouth = mouth_to(out);
    return honest_->on_message(message, mouth);
  }
  Result<Work> work(actors::Outbox& out) override {
    actors::Outbox mouth = mouth_to(out);
    return honest_->work(mouth);
  }
  Status stop(actors::Outbox& out) override { return honest_->stop(out); }

 private:
  actors::Outbox mouth_to(actors::Outbox& out) const {
    return actors::Outbox([this, &out](actors::OutgoingMessage message) {
      const auto truth = actors::IncomingMessage::from(std::move(message));
      actors::AllMessages::for_each([&]<class M>(std::type_identity<M>) {
        if (truth.is<M>())
          say(truth.decode<M>().value(), out);
      });
    });
  }
  template <class M>
  void say(M message, actors::Outbox& out) const {
    lie(message, out);
    out.send(std::move(message));
  }

  template <class M>
  void lie(M&, actors::Outbox&) const {}
  void lie(actors::Generated& m, actors::Outbox& out) const {
    if (lie_ == "segments" && !m.items.front().segments.empty() && may_lie_now())
      m.items.front().segments.front().tokens += Tokens(1);
    if (lie_ == "lease" && may_lie_now())
      m.items.front().lease = LeaseId(1'000'000);
    if (lie_ == "saved" && may_lie_now())
      out.send(actors::StateSaved{PolicyVersion(17), ""});
  }
  void lie(actors::StateSaved& m, actors::Outbox& out) const {
    if (lie_ == "saved twice" && may_lie_now())
      out.send(m);
  }
  void lie(actors::WeightsCommitted& m, actors::Outbox&) const {
    if (lie_ == "committed" && may_lie_now())
      m.version = kFarAhead;
  }
  void lie(actors::Activity& m, actors::Outbox& out) const {
    if (lie_ == "spans" && !m.spans.empty() && may_lie_now())
      out.send(m);
  }
  void lie(actors::Judged& m, actors::Outbox&) const {
    if (lie_ == "judged" && may_lie_now())
      m.items.pop_back();
    if (lie_ == "failing")
      for (auto& item : m.items)
        item.failure = "nothing can be judged today";
  }

  const std::string lie_ = setting("TEMPER_TEST_LIE");
  const std::unique_ptr<actors::Role> honest_;
};

}  // namespace

Result<std::unique_ptr<actors::Role>> make_lying_role(const actors::Welcome& welcome) {
  if (setting("TEMPER_TEST_LIE") == "loading" && welcome.role.kind == actors::RoleKind::Trainer &&
      may_lie_now())
    compute(std::chrono::seconds(3));
  TEMPER_TRY(auto honest, make_role(welcome));
  return std::unique_ptr<actors::Role>(std::make_unique<LyingRole>(std::move(honest)));
}

}  // namespace temper::orchestrator
