#include "orchestrator/run/processes/worker_source.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ranges>

namespace temper::orchestrator {
namespace {

constexpr Duration kBetweenLooks = std::chrono::seconds(1);
/// A waiting worker repeats its request every second.
constexpr Duration kStillWaits = std::chrono::seconds(5);

std::string user_of(const std::string& key) {
  return actors::kAttachedUser + key;
}

/// The address for workers of other machines: a socket on all addresses is reached by host name.
std::string reachable(const std::string& endpoint, const std::string& advertise) {
  const std::size_t begin = endpoint.find("://") + 3;
  const std::size_t colon = endpoint.rfind(':');
  std::string host = advertise.empty() ? endpoint.substr(begin, colon - begin) : advertise;
  if (host == "0.0.0.0" || host == "[::]" || host == "*") {
    std::array<char, 256> name{};
    ::gethostname(name.data(), name.size() - 1);
    host = name.data();
  }
  return endpoint.substr(0, begin) + host + endpoint.substr(colon);
}

}  // namespace

AttachedWorkers::AttachedWorkers(
    Place place, KeyRing ring, actors::AsioRouter& router, Connections& connections, OnEnd on_end)
    : place_(std::move(place)),
      ring_(std::move(ring)),
      router_(router),
      connections_(connections),
      on_end_(std::move(on_end)) {}

Result<std::unique_ptr<AttachedWorkers>> AttachedWorkers::open(
    Place place, KeyRing ring, actors::AsioRouter& router, Connections& connections, OnEnd on_end) {
  std::unique_ptr<AttachedWorkers> workers(new AttachedWorkers(
      std::move(place), std::move(ring), router, connections, std::move(on_end)));
  TEMPER_TRY(workers->incarnation_, workers->ring_.begin_incarnation());
  if (workers->ring_.keys().empty())
    TEMPER_TRY_STATUS(workers->ring_.make("worker", "any"));
  workers->let_in_keys();
  TEMPER_TRY_STATUS(workers->say_where(reachable(router.endpoint(), workers->place_.advertise)));
  return workers;
}

Status AttachedWorkers::say_where(const std::string& endpoint) const {
  return actors::write_address(place_.run_dir / "endpoint", {endpoint, run(), incarnation_});
}

void AttachedWorkers::let_in_keys() {
  for (const GrantedKey& key : ring_.keys()) {
    const bool good = key.revoked.empty();
    if (good && let_in_.emplace(key.name, key.open).second) {
      // All that it may be, and as many spares.
      router_.let_in(key.open, user_of(key.name), 2 * connections_.places(key.place));
    } else if (!good) {
      if (let_in_.erase(key.name) == 0)
        router_.let_in(key.open, user_of(key.name));  // so that it is refused by its name
      router_.keep_out(key.open);
      for (const ActorId actor : connections_.connected_by(key.name)) {
        const std::string why = fmt::format("its key {} was revoked", key.name);
        forget(actor, why);
        on_end_(actor, {why});
      }
    }
  }
}

void AttachedWorkers::places_changed() {
  let_in_.clear();  // each is let in again, for so many workers as may come now
  let_in_keys();
}

Result<ActorId> AttachedWorkers::admit(const actors::PeerId& peer,
                                       const std::string& user,
                                       const actors::Hello& hello,
                                       Time now) {
  const auto key = std::ranges::find_if(
      ring_.keys(), [&](const GrantedKey& k) { return user_of(k.name) == user; });
  if (key == ring_.keys().end())
    return invalid_input("workers attach with a key of `temper keys make`");
  if (!key->revoked.empty())
    return invalid_input(fmt::format("its key {} was revoked", key->name));
  auto admitted =
      connections_.admit_attached(peer, hello, {key->name, key->place, run(), incarnation_}, now);
  if (!admitted && admitted.error().code == ErrorCode::Unavailable) {
    waiting_[peer] = now;
  } else {
    waiting_.erase(peer);
  }
  return admitted;
}

Status AttachedWorkers::look_again(Time now) {
  if (now - looked_ < kBetweenLooks)
    return {};
  looked_ = now;
  std::erase_if(waiting_, [&](const auto& w) { return now - w.second > kStillWaits; });
  TEMPER_TRY(const std::uint64_t newest, ring_.incarnation());
  if (newest > incarnation_) {
    return Error{ErrorCode::Unavailable,
                 fmt::format("orchestrator {} of this run has begun; this one, number {}, ends",
                             newest,
                             incarnation_)};
  }
  TEMPER_TRY(const bool changed, ring_.refresh());
  if (changed)
    let_in_keys();
  return {};
}

void AttachedWorkers::say_the_end(Run run) {
  const auto newest = ring_.incarnation();
  if (newest && *newest == incarnation_) {  // else the file is another's
    // Where neither can be done workers end when their patience does.
    std::error_code ignored;
    if (run == Run::Finished) {
      static_cast<void>(say_where({}));
    } else {
      std::filesystem::remove(place_.run_dir / "endpoint", ignored);
    }
  }
  for (const auto& [peer, when] : waiting_)
    router_.send(peer, actors::outgoing(actors::Stop{}));
  waiting_.clear();
}

void AttachedWorkers::provide(ActorId actor) {
  forget(actor, "its place is given to another");
  connections_.await(actor);
}

void AttachedWorkers::forget(ActorId actor, const std::string& why) {
  if (const actors::PeerId* known = connections_.peer_of(actor)) {
    const actors::PeerId peer = *known;
    router_.forget(peer);
    router_.send(peer, actors::outgoing(actors::Reject{why, true}));
  }
  connections_.forget(actor);
}

void AttachedWorkers::left(ActorId actor) {
  if (const actors::PeerId* peer = connections_.peer_of(actor))
    router_.forget(*peer);
  connections_.forget(actor);
  on_end_(actor, {"left"});
}

std::size_t AttachedWorkers::left() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      connections_.peers(), [this](const auto& p) { return connections_.is_attached(p.second); }));
}

void AttachedWorkers::abandon_all() {
  std::vector<ActorId> all;
  for (const auto& [peer, actor] : connections_.peers()) {
    if (connections_.is_attached(actor))
      all.push_back(actor);
  }
  for (const ActorId actor : all)
    forget(actor, "the run has ended");
}

}  // namespace temper::orchestrator
