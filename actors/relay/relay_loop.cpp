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

void RelayLoop::begin(Relay::Ends ends, Duration timeout) {
  end();
  ends_ = std::move(ends);
  timeout_ = timeout;
  for (const std::string& key : admitted_)
    exchange_.keep_out(key);
  admitted_.clear();
  for (const auto& [peer, child] : children_)
    exchange_.forget(peer);
  children_.clear();
}

void RelayLoop::end() {
  ends_.reset();
  if (fetch_)
    forget_image();
}

void RelayLoop::on_message(const IncomingMessage& message) {
  if (!ends_)
    return;
  Status status;
  if (message.is<WeightsChunk>()) {
    // What another source was asked for is not the orchestrator's to send.
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
    ends_->role(IncomingMessage::from(outgoing(StageWeights{memory_->handle()})));
    return;
  }
  forget_image();
  auto fetch = Fetch::start(handle, work.sources.size(), timeout_, clock_.now());
  if (!fetch) {
    ends_->orchestrator(outgoing(WeightsStaged{handle.version, fetch.error().context}));
    return;
  }
  image_ = handle;
  sources_ = std::move(work.sources);
  fetch_ = *std::move(fetch);
}

void RelayLoop::feed(const FeedWeights& work) {
  if (!is_key(work.key))
    return log_.warning("message dropped", {{"why", "weights.feed without a key"}});
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

/// Whoever waits for it is told to ask another.
void RelayLoop::forget_image() {
  for (auto& [peer, child] : children_) {
    if (child.asks)
      turn_away(peer, Fetch::Refusal::Never, "the image is here no more");
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
  if (ends_)
    ends_->orchestrator(outgoing(WeightsStaged{version, error.context}));
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
    on_whole();
}

void RelayLoop::on_whole() {
  auto image = fetch_->take(clock_.now());
  if (!image)
    return fail(image.error());
  if (!*image) {
    log_.warning("weights are fetched anew",
                 {{"version", image_->version}, {"why", "the checksum of the whole differs"}});
    for (auto& [peer, child] : children_) {  // what they were sent is wrong as well
      if (child.asks)
        turn_away(peer, Fetch::Refusal::Never, "the image was wrong");
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
  if (ends_)
    ends_->role(IncomingMessage::from(outgoing(StageWeights{memory_->handle()})));
}

// --- Who feeds this one

void RelayLoop::ask_on() {
  if (!fetch_ || !ends_)
    return;
  const auto ask = fetch_->next(clock_.now());
  if (!ask)
    return;
  moved_ = true;
  const FetchWeights what{image_->version, image_->checksum, ask->offset};
  if (!ask->source) {
    log_.warning("the orchestrator is asked for weights",
                 {{"version", what.version}, {"from_byte", what.offset}});
    upstream_.close();
    ends_->orchestrator(outgoing(what));
    return;
  }
  if (const Status asked = upstream_.ask(sources_[*ask->source], what); !asked) {
    log_.warning("a worker cannot be asked for weights", {{"why", asked.error().context}});
    fetch_->refused(Fetch::Refusal::Never, clock_.now());
  }
}

void RelayLoop::turn_upstream() {
  const Upstream::Came came = upstream_.turn();
  moved_ = moved_ || came.sent || !came.messages.empty();
  const auto from_source = [this] { return fetch_ && fetch_->source(); };
  if (came.alive && from_source())
    fetch_->heard(clock_.now());
  for (const IncomingMessage& message : came.messages) {
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
  if (came.refused && from_source())
    fetch_->refused(Fetch::Refusal::NotYet, clock_.now());
}

// --- Those that are fed

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
    exchange_.drop(arrived.peer, "a worker asks another for weights and nothing else");
}

void RelayLoop::on_hello(const Exchange::Arrival& arrived) {
  const std::string key = arrived.user.empty() ? std::string() : arrived.user.substr(1);
  if (!admitted_.contains(key))
    return exchange_.drop(arrived.peer, "it may not ask for weights here");
  exchange_.admit(arrived.peer, std::make_shared<PeerLiveness>(clock_.now()));
  exchange_.send(arrived.peer, outgoing(Heartbeat{}));  // it may ask now
  children_[arrived.peer] = {key};
}

void RelayLoop::on_fetch(const PeerId& peer, Child& child, const FetchWeights& what) {
  child.asks = false;
  if (!image_ || !same_image(*image_, what.version, what.checksum)) {
    const bool later = !image_ || image_->version < what.version;
    return turn_away(peer,
                     later ? Fetch::Refusal::NotYet : Fetch::Refusal::Never,
                     fmt::format("weights of version {} are not here", what.version));
  }
  if (what.offset % kChunkSize != 0)
    return turn_away(peer, Fetch::Refusal::Never, "no chunk begins there");
  child.asks = true;
  child.next = what.offset;
  catch_up(peer, child);
}

/// All that is here already.
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

void RelayLoop::turn_away(const PeerId& peer, Fetch::Refusal how, std::string why) {
  exchange_.send(peer, outgoing(Reject{std::move(why), how == Fetch::Refusal::NotYet}));
}

// --- The loop

bool RelayLoop::turn() {
  moved_ = false;
  turn_upstream();
  ask_on();
  Exchange::TurnResult moved = exchange_.turn(Exchange::Reading::On, Exchange::Heartbeats::On);
  for (const Exchange::Arrival& arrived : moved.arrived)
    on_child(arrived);
  for (const Exchange::BrokenPeer& broken : moved.broken)
    children_.erase(broken.peer);
  return moved_ || moved.more || !moved.arrived.empty();
}

Status RelayLoop::wait(int wake_fd) {
  const auto deadline = fetch_ ? fetch_->deadline() : std::nullopt;
  const Duration patience =
      deadline ? std::max(Duration::zero(), *deadline - clock_.now()) : Duration::max();
  return exchange_.wait(Exchange::Reading::On, wake_fd, patience);
}

}  // namespace temper::actors
