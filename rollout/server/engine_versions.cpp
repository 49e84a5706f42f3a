// Server engine: weights, and recovery from a misbehaving server.
#include "rollout/server/internal/http_engine.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace temper::rollout::internal {
namespace {

using actors::ServerVersion;

constexpr Duration kLookEvery = std::chrono::milliseconds(200);
/// Retries if a server dies while it is warmed up, or while weights are loaded after it released
/// its memory.
constexpr int kReturns = 5;
/// Time after a pause in which aborted requests return.
constexpr Duration kEndedBy = std::chrono::milliseconds(50);

}  // namespace

Status HttpEngine::stage(PolicyVersion version, std::span<const std::byte> weights) {
  auto written = server_->write(version, weights);
  if (!written)
    return std::move(written).error().within(fmt::format("weights of version {}", version));
  const std::lock_guard lock(staging_);
  staged_.emplace(version, *std::move(written));
  return {};
}

Status HttpEngine::commit(PolicyVersion version) {
  std::optional<ServerVersion> next;
  {
    const std::lock_guard lock(staging_);
    if (!staged_ || staged_->first != version) {
      return invalid_input(
          fmt::format("commit of version {}: {} is staged",
                      version,
                      staged_ ? fmt::format("version {}", staged_->first) : "nothing"));
    }
    if (version < version_) {
      return invalid_input(fmt::format(
          "commit of version {}: the engine already has version {}", version, version_));
    }
    next = std::move(staged_->second);
    staged_.reset();
  }
  if (!weights_here_) {
    TEMPER_TRY_STATUS(load_released(*next));
    version_ = version;
    before_ = current_ ? std::exchange(current_->canary, {}) : std::nullopt;
    current_ = std::move(next);
    return {};
  }
  if (Status brought = load_version(*next, current_ ? current_->canary : std::nullopt); !brought) {
    // The server's weights are unknown now; generation continues after version_ is loaded again.
    state_ = State::Away;
    away_since_ = now();
    return brought;
  }
  version_ = version;
  if (current_ && current_->label != next->label)
    server_->forget(*current_);
  current_ = std::move(next);
  state_ = State::Working;
  server_->remove_old(current_->label, first_.label);
  return {};
}

Status HttpEngine::meet(const std::filesystem::path& model) {
  for (int attempt = 1;; ++attempt) {
    TEMPER_TRY_STATUS(server_->await(model));
    TEMPER_TRY_STATUS(server_->api().can_generate());
    Status met = actors::take_over(*server_);
    if (met)
      met = actors::warm_up(*server_);
    if (met || met.error().code != ErrorCode::Unavailable || attempt == kReturns)
      return met;
    ++waste_.outages;
    server_->log().warning("server away", {{"why", met.error().context}});
  }
}

/// Unavailable: the server is away, or was replaced by one that holds all of its memory.
Status HttpEngine::find_released() {
  TEMPER_TRY(const std::string label, server_->label());
  if (label == released_label_)
    return {};
  return Error{
      ErrorCode::Unavailable,
      fmt::format(
          "its label is \"{}\", expected \"{}\": it was restarted", label, released_label_)};
}

/// Loads `next` into a server that released its memory. If it was restarted since, it holds all of
/// its memory again, and releases it first.
Status HttpEngine::load_released(const ServerVersion& next) {
  for (int attempt = 1;; ++attempt) {
    actors::CommitReport report;
    Status loaded = find_released();
    if (loaded)
      loaded = actors::load_released(*server_, next, report);
    if (loaded) {
      weights_here_ = true;
      server_->log().info("version loaded, not verified yet", {{"label", next.label}});
      return {};
    }
    if (loaded.error().code != ErrorCode::Unavailable || attempt == kReturns)
      return Error(loaded.error()).within(fmt::format("version {} of the server", next.label));
    ++waste_.outages;
    server_->log().warning("server away", {{"why", loaded.error().context}});
    TEMPER_TRY_STATUS(meet());
    TEMPER_TRY_STATUS(free_kv());
    TEMPER_TRY_STATUS(free_weights());
  }
}

void HttpEngine::log_commit(const ServerVersion& next, const actors::CommitReport& report) const {
  const auto text = [](const std::optional<double>& x) {
    return x ? fmt::format("{:.2e}", *x) : std::string("none");
  };
  const auto took = [](Duration d) { return fmt::format("{:.1f}ms", seconds(d) * 1e3); };
  server_->log().info("version committed",
                      {{"label", next.label},
                       {"bytes", next.bytes.count()},
                       {"write", took(next.writing)},
                       {"pause", took(report.pause)},
                       {"drain", took(report.drain)},
                       {"load", took(report.load)},
                       {"resume", took(report.resume)},
                       {"check", took(report.check)},
                       {"attempts", report.attempts},
                       {"canary", text(report.canary_distance)},
                       {"sampled", text(report.sampled_distance)}});
}

/// Loads `next` into the server; waits for a server that is away.
Status HttpEngine::load_version(const ServerVersion& next,
                                const std::optional<actors::Canary>& before) {
  const Time deadline = now() + server_->options().config.patience;
  for (;;) {
    actors::CommitReport report;
    const Status done = actors::commit_version(
        *server_, next, before, [this] { drain(); }, report);
    if (done) {
      log_commit(next, report);
      return {};
    }
    drain();
    if (done.error().code != ErrorCode::Unavailable || now() >= deadline)
      return Error(done.error()).within(fmt::format("version {} of the server", next.label));
    ++waste_.outages;
    server_->log().warning("server away", {{"why", done.error().context}});
    TEMPER_TRY_STATUS(meet(start_folder(next)));
  }
}

/// Waits until every answer has come or its connection is closed. Requests that reached the server
/// during the pause wait in it, and are aborted by id.
void HttpEngine::drain() {
  const Time begin = now();
  Time next_ask = begin + kEndedBy;
  while (responses_.under_way() > 0 && now() - begin < options_.drain) {
    collect(kAnswerPatience);
    if (now() > next_ask) {  // Repeated, as a request may reach the server after its abort.
      next_ask = now() + kEndedBy;
      abort(responses_.ids_under_way());
    }
  }
  if (responses_.under_way() == 0)
    return;
  server_->log().warning("answers abandoned", {{"count", responses_.under_way()}});
  waste_.sampled_again += responses_.under_way();
  server_->data().drop_all();
  responses_.requeue_all();
}

// --- Recovery from a misbehaving server

void HttpEngine::suspect(std::string_view why) {
  if (state_ != State::Working)
    return;
  state_ = State::Suspect;
  ++waste_.outages;
  away_since_ = now();
  next_look_ = now();
  server_->log().warning("server suspect", {{"why", why}});
}

/// Probes a server that is suspect or away, once.
Status HttpEngine::probe() {
  if (now() < next_look_) {
    collect(std::min(kAnswerPatience, next_look_ - now()));
    return {};
  }
  if (state_ == State::Suspect) {
    const auto label = server_->label();
    if (label && current_ && *label == current_->label) {
      state_ = State::Working;
      return {};
    }
    state_ = State::Away;
    server_->data().drop_all();
    waste_.sampled_again += responses_.under_way();
    responses_.requeue_all();
  }
  TEMPER_TRY(const bool works, server_->look(folder()));
  if (works)
    return recover();
  next_look_ = now() + kLookEvery;
  const Duration patience = server_->options().config.patience;
  if (now() - away_since_ < patience)
    return {};
  return Error{ErrorCode::Timeout,
               fmt::format("the server was away for {} (engine.patience)", to_text(patience))};
}

Status HttpEngine::recover() {
  TEMPER_TRY_STATUS(actors::take_over(*server_));
  TEMPER_TRY_STATUS(actors::warm_up(*server_));
  if (current_)
    TEMPER_TRY_STATUS(load_version(*current_, std::nullopt));
  state_ = State::Working;
  server_->log().info("server back",
                      {{"away", fmt::format("{:.1f}s", seconds(now() - away_since_))},
                       {"outages", waste_.outages}});
  return {};
}

// --- Memory

Status HttpEngine::free_kv() {
  TEMPER_TRY_STATUS(require_idle(load(), "free_kv"));
  TEMPER_TRY_STATUS(server_->release(actors::ServerMemory::KvCache));
  cache_here_ = false;
  return {};
}

Status HttpEngine::free_weights() {
  TEMPER_TRY_STATUS(require_idle(load(), "free_weights"));
  TEMPER_TRY(released_label_, server_->label());
  TEMPER_TRY_STATUS(server_->release(actors::ServerMemory::Weights));
  weights_here_ = false;
  return {};
}

/// With the cache the server can generate again, so weights that were loaded without it are
/// verified now, before any request.
Status HttpEngine::allocate_kv() {
  TEMPER_TRY_STATUS(require_idle(load(), "allocate_kv"));
  if (cache_here_)
    return {};
  if (!current_ || !weights_here_)
    return invalid_input("allocate_kv: weights must be loaded first");
  actors::CommitReport report;
  TEMPER_TRY_STATUS(actors::wake_released(*server_, *current_, before_, report));
  cache_here_ = true;
  state_ = State::Working;
  log_commit(*current_, report);
  server_->remove_old(current_->label, first_.label);
  return {};
}

/// Not known for a server.
EngineMemory HttpEngine::memory() const {
  return {};
}

}  // namespace temper::rollout::internal
