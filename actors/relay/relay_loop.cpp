#include "actors/relay/relay_loop.hpp"

#include "actors/transport/credentials.hpp"
#include "core/hash.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace temper::actors {
namespace {

constexpr auto kChunkSize = static_cast<std::uint64_t>(kChunk.count());
/// Chunks that wait to be sent to one worker, beyond those in flight.
constexpr std::size_t kWaiting = 4;

bool same_image(const WeightsHandle& a, PolicyVersion version, std::uint64_t checksum) {
  return a.version == version && a.checksum == checksum;
}

/// The chunk of `image` at `offset`.
OutgoingMessage chunk_of(std::span<const std::byte> image,
                         PolicyVersion version,
                         std::uint64_t offset) {
  const auto piece = image.subspan(offset, std::min(kChunkSize, image.size() - offset));
  return outgoing_large(WeightsChunk{.version = version,
                                     .offset = offset,
                                     .checksum = hash64(piece),
                                     .data = {piece.begin(), piece.end()}},
                        piece.size() + 64);
}

}  // namespace

void RelayLoop::begin(Relay::Sinks sinks, Duration timeout) {
  end();
  upstream_.close();  // the source may have begun anew as well, and does not know this connection
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
  for (const PublishedImage& image : published_)  // the role will be built again
    reject_all(image.handle, "the trainer has lost its orchestrator");
  published_.clear();
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
                 [&](const FeedWeights& work) { feed(work); },
                 [&](const FetchWeights& what) { send_to_orchestrator(what); })) {
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

// --- Images of this worker's trainer

void RelayLoop::publish(const WeightsHandle& handle, MappedBuffer image) {
  published_.push_back({handle, std::move(image)});
  const auto end = published_.end() - static_cast<std::ptrdiff_t>(newest_published().size());
  published_.erase(std::remove_if(published_.begin(),
                                  end,
                                  [&](const PublishedImage& p) { return !is_asked_for(p.handle); }),
                   end);
}

std::span<const RelayLoop::PublishedImage> RelayLoop::newest_published() const {
  return std::span(published_).last(std::min(published_.size(), kImagesOnRequest));
}

/// The orchestrator asks for an image that it heard of, and forgets it when it hears of the second
/// later one. So an older image needs no answer, and its chunks would be a protocol violation.
void RelayLoop::send_to_orchestrator(const FetchWeights& what) {
  for (const PublishedImage& image : newest_published()) {
    if (!same_image(image.handle, what.version, what.checksum))
      continue;
    const std::span<const std::byte> bytes = image.bytes.bytes();
    for (std::uint64_t offset = what.offset; offset < bytes.size(); offset += kChunkSize)
      sinks_->orchestrator(chunk_of(bytes, what.version, offset));
  }
}

std::optional<RelayLoop::Available> RelayLoop::find(const FetchWeights& what) const {
  if (image_ && same_image(*image_, what.version, what.checksum))
    return Available{fetch_ ? fetch_->here() : whole_->bytes(),
                     static_cast<std::uint64_t>(image_->bytes.count())};
  for (const PublishedImage& p : published_) {
    if (same_image(p.handle, what.version, what.checksum))
      return Available{p.bytes.bytes(), p.bytes.bytes().size()};
  }
  return std::nullopt;
}

bool RelayLoop::is_asked_for(const WeightsHandle& image) const {
  return std::ranges::any_of(children_, [&](const auto& c) {
    return c.second.asks && same_image(image, c.second.asks->version, c.second.asks->checksum);
  });
}

// --- The image that comes from a source

/// Tells the workers that wait for the image to ask another source.
void RelayLoop::forget_image() {
  if (image_)
    reject_all(*image_, "this worker no longer has the image");
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
    if (!child.asks || child.asks->offset != chunk->offset || !has_room(peer) ||
        !same_image(*image_, child.asks->version, child.asks->checksum))
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
    reject_all(*image_, "the image was corrupt");  // they received the same wrong bytes
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
  child.asks.reset();
  if (!find(what)) {
    const auto later = [&](const WeightsHandle& have) { return have.version < what.version; };
    const bool not_yet = image_               ? later(*image_)
                         : published_.empty() ? true
                                              : later(published_.back().handle);
    return reject(peer,
                  not_yet ? Fetch::Refusal::NotYet : Fetch::Refusal::Never,
                  fmt::format("this worker does not have weights version {}", what.version));
  }
  if (what.offset % kChunkSize != 0)
    return reject(peer, Fetch::Refusal::Never, "expected an offset at a chunk boundary");
  child.asks = what;
  catch_up(peer, child);
}

/// Sends the chunks that are here, as far as the connection has room.
void RelayLoop::catch_up(const PeerId& peer, Child& child) {
  const auto image = find(*child.asks);
  while (child.asks && child.asks->offset < image->here.size() && has_room(peer)) {
    moved_ = true;
    const std::uint64_t offset = child.asks->offset;
    exchange_.send(peer, chunk_of(image->here, child.asks->version, offset));
    sent_to(child, std::min<std::uint64_t>(kChunkSize, image->here.size() - offset));
  }
}

bool RelayLoop::has_room(const PeerId& peer) const {
  return exchange_.waiting(peer) < kWaiting;
}

void RelayLoop::sent_to(Child& child, std::uint64_t bytes) {
  child.asks->offset += bytes;
  if (child.asks->offset >= find(*child.asks)->size)
    child.asks.reset();
}

void RelayLoop::reject(const PeerId& peer, Fetch::Refusal how, std::string why) {
  exchange_.send(peer, outgoing(Reject{std::move(why), how == Fetch::Refusal::NotYet}));
}

/// Tells the workers that fetch the image to ask another source.
void RelayLoop::reject_all(const WeightsHandle& image, const std::string& why) {
  for (auto& [peer, child] : children_) {
    if (!child.asks || !same_image(image, child.asks->version, child.asks->checksum))
      continue;
    reject(peer, Fetch::Refusal::Never, why);
    child.asks.reset();
  }
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
  for (auto& [peer, child] : children_) {
    if (child.asks)
      catch_up(peer, child);
  }
  return moved_ || result.more || !result.arrived.empty();
}

Status RelayLoop::wait(int wake_fd) {
  const auto deadline = fetch_ ? fetch_->deadline() : std::nullopt;
  const Duration patience =
      deadline ? std::max(Duration::zero(), *deadline - clock_.now()) : Duration::max();
  return exchange_.wait(Exchange::Reading::On, wake_fd, patience);
}

}  // namespace temper::actors
