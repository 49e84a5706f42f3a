// The relay's logic, on its thread: one image, the source that it comes from, and the workers that
// it is forwarded to; for a trainer, the images that it has published.
#pragma once

#include "actors/relay/fetch.hpp"
#include "actors/relay/relay.hpp"
#include "actors/relay/upstream.hpp"
#include "actors/shared_memory/shared_buffer.hpp"
#include "actors/transport/exchange.hpp"

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace temper::actors {

class RelayLoop {
 public:
  RelayLoop(Exchange exchange, Upstream upstream, const Clock& clock, const Log& log)
      : exchange_(std::move(exchange)), upstream_(std::move(upstream)), clock_(clock), log_(log) {}

  // Called with what Relay passes on.
  void begin(Relay::Sinks sinks, Duration timeout);
  void end();
  void on_message(const IncomingMessage& message);
  /// Keeps an image of this worker's trainer for those that ask for it.
  void publish(const WeightsHandle& handle, MappedBuffer image);

  /// Reads and sends without blocking. Returns true if it should be called again at once.
  bool turn();
  /// Blocks until there is work, `wake_fd` is readable, or the deadline of a fetch has passed.
  /// Error: Io if the socket fails.
  Status wait(int wake_fd);
  std::optional<int> upstream_fd() const { return upstream_.fd(); }
  const std::string& endpoint() const { return exchange_.endpoint(); }

 private:
  /// A worker that fetches from this one.
  struct Child {
    std::string key;
    std::optional<FetchWeights> asks{};  ///< From the next chunk to send on.
  };
  struct PublishedImage {
    WeightsHandle handle;
    MappedBuffer bytes;
  };
  void stage(StageWeights work);
  void feed(const FeedWeights& work);
  void send_to_orchestrator(const FetchWeights& what);
  std::span<const PublishedImage> newest_published() const;
  void on_chunk(const IncomingMessage& message);
  void on_complete();
  void fail(const Error& error);
  void forget_image();
  void ask_source();
  void turn_upstream();

  void on_child(const Exchange::Arrival& arrived);
  void on_hello(const Exchange::Arrival& arrived);
  void on_fetch(const PeerId& peer, Child& child, const FetchWeights& what);
  void catch_up(const PeerId& peer, Child& child);
  bool has_room(const PeerId& peer) const;
  void sent_to(Child& child, std::uint64_t bytes);
  void reject(const PeerId& peer, Fetch::Refusal how, std::string why);
  void reject_all(const WeightsHandle& image, const std::string& why);

  struct Available {
    std::span<const std::byte> here;  ///< From the start of the image.
    std::uint64_t size = 0;           ///< Of the image.
  };
  /// Empty if this worker does not have the image.
  std::optional<Available> find(const FetchWeights& what) const;
  bool is_asked_for(const WeightsHandle& image) const;

  Exchange exchange_;
  Upstream upstream_;
  const Clock& clock_;
  const Log& log_;
  std::optional<Relay::Sinks> sinks_;
  Duration timeout_{};
  std::set<std::string> admitted_;  ///< Public keys of the workers that may fetch.
  std::map<PeerId, Child> children_;

  std::optional<WeightsHandle> image_;  ///< The image that is complete or arriving.
  std::vector<RelayAddress> sources_;
  std::optional<Fetch> fetch_;          ///< Set while the image is arriving.
  std::optional<SharedBuffer> memory_;  ///< Set once the image is complete.
  std::optional<MappedBuffer> whole_;
  std::vector<PublishedImage> published_;  ///< Newest last.
  bool moved_ = false;
};

}  // namespace temper::actors
