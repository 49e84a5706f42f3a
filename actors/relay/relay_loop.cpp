#include "actors/relay/relay_loop.hpp"

#include "actors/transport/credentials.hpp"
#include "core/hash.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace temper::actors {
namespace {

constexpr auto kChunkSize = static_cast<std::uint64_t>(kChunk.count());

bool same_image(const WeightsHandle& a, PolicyVersion version, std::uint64_t checksum) {
  return a.version == version && a.checksum == checksum;
}

}  // namespace

void RelayLoop::begin(Relay::Sinks sinks, Duration timeout) {
  end();
  sinks_ = std::move(sinks);
  timeout_ = timeout;
  for (const std::string& key : admitted_)
    exchange_.keep_out(key);
  admitted_.clear();
  for (const auto& [peer, child] : children_)
    exchange_.forget(peer);
  children_.clear();
}

void RelayLoop::end() {
  sinks_.reset();
  if (fetch_)
    forget_image();
}

void RelayLoop::on_message(const IncomingMessage& message) {
  if (!sinks_)
    return;
  Status status;
  if (message.is<WeightsChunk>()) {
    // Chunks were requested from another source, so the orchestrator must not send them.
    if (fetch_ && !fetch_->source())
      on_chunk(message);
  } else if (auto answer = dispatch(
                 message,
                 [&](StageWeights work) { stage(std::move(work)); },
                 [&](const FeedWeights& work) { feed(work); })) {
    status = *std::move(answer);
  }
  if (!status)
    log_.warning("message dropped", {{"why", status.error().context}});
}

void RelayLoop::stage(StageWeights work) {
  const WeightsHandle& handle = work.weights;
  if (whole_ && same_image(*image_, handle.version, handle.checksum)) {
    sinks_->role(IncomingMessage::from(outgoing(StageWeights{memory_->handle()})));
    return;
  }
  forget_image();
  auto fetch = Fetch::start(handle, work.sources.size(), timeout_, clock_.now());
  if (!fetch) {
    sinks_->orchestrator(outgoing(WeightsStaged{handle.version, fetch.error().context}));
    return;
  }
  image_ = handle;
  sources_ = std::move(work.sources);
  fetch_ = *std::move(fetch);
}

void RelayLoop::feed(const FeedWeights& work) {
  if (!is_key(work.key))
    return log_.warning("message dropped", {{"why", "weights.feed: expected a key, found none"}});
  if (work.admitted) {
    if (admitted_.insert(work.key).second)
      exchange_.let_in(work.key, kAttachedUser + work.key);
    return;
  }
  if (admitted_.erase(work.key) == 0)
    return;
  exchange_.keep_out(work.key);
  std::erase_if(children_, [&](const auto& c) {
    if (c.second.key == work.key)
      exchange_.forget(c.first);
    return c.second.key == work.key;
  });
}

/// Tells the workers that wait for the image to ask another source.
void RelayLoop::forget_image() {
  for (auto& [peer, child] : children_) {
    if (child.asks)
      reject(peer, Fetch::Refusal::Never, "this worker no longer has the image");
    child.asks = false;
  }
  image_.reset();
  fetch_.reset();
  whole_.reset();
  memory_.reset();
}

void RelayLoop::fail(const Error& error) {
  const PolicyVersion version = image_->version;
  forget_image();
  if (sinks_)
    sinks_->orchestrator(outgoing(WeightsStaged{version, error.context}));
}

void RelayLoop::on_chunk(const IncomingMessage& message) {
  if (!fetch_)
    return;
  moved_ = true;
  const auto chunk = message.decode<WeightsChunk>();
  if (!chunk && !fetch_->source())
    return fail(chunk.error());
  if (!chunk)
    return fetch_->refused(Fetch::Refusal::Never, clock_.now());
  const auto kept = fetch_->add(*chunk, clock_.now());
  if (!kept)
    return fail(kept.error());
  if (!*kept)
    return;
  for (auto& [peer, child] : children_) {
    if (!child.asks || child.next != chunk->offset)
      continue;
    exchange_.send(peer,
                   {.tag = WeightsChunk::kTag,
                    .version = message.envelope().version,
                    .body = {},
                    .shared = message.shared_body()});
    sent_to(child, chunk->data.size());
  }
  if (fetch_->is_whole())
    on_complete();
}

void RelayLoop::on_complete() {
  auto image = fetch_->take(clock_.now());
  if (!image)
    return fail(image.error());
  if (!*image) {
    log_.warning(
        "fetching weights again",
        {{"version", image_->version}, {"why", "the checksum of the image does not match"}});
    for (auto& [peer, child] : children_) {  // they received the same wrong bytes
      if (child.asks)
        reject(peer, Fetch::Refusal::Never, "the image was corrupt");
      child.asks = false;
    }
    return;
  }
  fetch_.reset();
  auto memory = SharedBuffer::create(image_->version, **image);
  if (!memory)
    return fail(memory.error());
  auto whole = MappedBuffer::open(memory->handle());
  if (!whole)
    return fail(whole.error());
  memory_ = *std::move(memory);
  whole_ = *std::move(whole);
  if (sinks_)
    sinks_->role(IncomingMessage::from(outgoing(StageWeights{memory_->handle()})));
}

// --- The source of the image

void RelayLoop::ask_source() {
  if (!fetch_ || !sinks_)
    return;
  const auto ask = fetch_->next(clock_.now());
  if (!ask)
    return;
  moved_ = true;
  const FetchWeights what{image_->version, image_->checksum, ask->offset};
  if (!ask->source) {
    log_.warning("fetching weights from the orchestrator",
                 {{"version", what.version}, {"from_byte", what.offset}});
    upstream_.close();
    sinks_->orchestrator(outgoing(what));
    return;
  }
  if (const Status asked = upstream_.ask(sources_[*ask->source], what); !asked) {
    log_.warning("cannot fetch weights from a worker", {{"why", asked.error().context}});
    fetch_->refused(Fetch::Refusal::Never, clock_.now());
  }
}

void RelayLoop::turn_upstream() {
  const Upstream::TurnResult result = upstream_.turn();
  moved_ = moved_ || result.sent || !result.messages.empty();
  const auto from_source = [this] { return fetch_ && fetch_->source(); };
  if (result.alive && from_source())
    fetch_->heard(clock_.now());
  for (const IncomingMessage& message : result.messages) {
    if (!from_source())
      return;
    if (message.is<WeightsChunk>()) {
      on_chunk(message);
    } else if (message.is<Reject>()) {
      const auto reject = message.decode<Reject>();
      const bool again = reject && reject->again;
      fetch_->refused(again ? Fetch::Refusal::NotYet : Fetch::Refusal::Never, clock_.now());
    }
  }
  if (result.refused && from_source())
    fetch_->refused(Fetch::Refusal::NotYet, clock_.now());
}

// --- Workers that fetch from this one

void RelayLoop::on_child(const Exchange::Arrival& arrived) {
  if (arrived.message.is<Hello>())
    return on_hello(arrived);
  const auto child = children_.find(arrived.peer);
  if (child == children_.end())
    return;
  const auto answer = dispatch(arrived.message, [&](const FetchWeights& what) {
    on_fetch(arrived.peer, child->second, what);
  });
  if (!answer || !*answer)
    exchange_.drop(arrived.peer, "expected weights.fetch from another worker");
}

void RelayLoop::on_hello(const Exchange::Arrival& arrived) {
  const std::string key = arrived.user.empty() ? std::string() : arrived.user.substr(1);
  if (!admitted_.contains(key))
    return exchange_.drop(arrived.peer, "this peer may not fetch weights from this worker");
  exchange_.admit(arrived.peer, std::make_shared<PeerLiveness>(clock_.now()));
  exchange_.send(arrived.peer, outgoing(Heartbeat{}));  // tells the peer that it may fetch
  children_[arrived.peer] = {key};
}

void RelayLoop::on_fetch(const PeerId& peer, Child& child, const FetchWeights& what) {
  child.asks = false;
  if (!image_ || !same_image(*image_, what.version, what.checksum)) {
    const bool later = !image_ || image_->version < what.version;
    return reject(peer,
                  later ? Fetch::Refusal::NotYet : Fetch::Refusal::Never,
                  fmt::format("this worker does not have weights version {}", what.version));
  }
  if (what.offset % kChunkSize != 0)
    return reject(peer, Fetch::Refusal::Never, "expected an offset at a chunk boundary");
  child.asks = true;
  child.next = what.offset;
  catch_up(peer, child);
}

/// Sends all chunks that have arrived already.
void RelayLoop::catch_up(const PeerId& peer, Child& child) {
  const std::span<const std::byte> here = fetch_ ? fetch_->here() : whole_->bytes();
  while (child.next < here.size()) {
    const auto size = std::min<std::uint64_t>(kChunkSize, here.size() - child.next);
    const auto piece = here.subspan(child.next, size);
    exchange_.send(peer,
                   outgoing_large(WeightsChunk{.version = image_->version,
                                               .offset = child.next,
                                               .checksum = hash64(piece),
                                               .data = {piece.begin(), piece.end()}},
                                  piece.size() + 64));
    sent_to(child, size);
  }
}

void RelayLoop::sent_to(Child& child, std::uint64_t bytes) {
  child.next += bytes;
  if (std::cmp_greater_equal(child.next, image_->bytes.count()))
    child.asks = false;
}

void RelayLoop::reject(const PeerId& peer, Fetch::Refusal how, std::string why) {
  exchange_.send(peer, outgoing(Reject{std::move(why), how == Fetch::Refusal::NotYet}));
}

// --- The loop

bool RelayLoop::turn() {
  moved_ = false;
  turn_upstream();
  ask_source();
  Exchange::TurnResult result = exchange_.turn(Exchange::Reading::On, Exchange::Heartbeats::On);
  for (const Exchange::Arrival& arrived : result.arrived)
    on_child(arrived);
  for (const Exchange::BrokenPeer& broken : result.broken)
    children_.erase(broken.peer);
  return moved_ || result.more || !result.arrived.empty();
}

Status RelayLoop::wait(int wake_fd) {
  const auto deadline = fetch_ ? fetch_->deadline() : std::nullopt;
  const Duration patience =
      deadline ? std::max(Duration::zero(), *deadline - clock_.now()) : Duration::max();
  return exchange_.wait(Exchange::Reading::On, wake_fd, patience);
}

}  // namespace temper::actors
