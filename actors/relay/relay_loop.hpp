// What a relay does, on its thread: one image, those that are fed with it, and who feeds this one.
#pragma once

#include "actors/relay/fetch.hpp"
#include "actors/relay/relay.hpp"
#include "actors/relay/upstream.hpp"
#include "actors/shared_memory/shared_buffer.hpp"
#include "actors/transport/exchange.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace temper::actors {

class RelayLoop {
 public:
  RelayLoop(Exchange exchange, Upstream upstream, const Clock& clock, const Log& log)
      : exchange_(std::move(exchange)), upstream_(std::move(upstream)), clock_(clock), log_(log) {}

  // What the front hands over.
  void begin(Relay::Ends ends, Duration timeout);
  void end();
  void on_message(const IncomingMessage& message);

  /// Reads, sends, and is done. True: there may be more to do at once.
  bool turn();
  /// Until there is something to do, or `wake_fd` is readable.
  Status wait(int wake_fd);
  std::optional<int> upstream_fd() const { return upstream_.fd(); }
  const std::string& endpoint() const { return exchange_.endpoint(); }

 private:
  /// A worker that is fed by this one.
  struct Child {
    std::string key;
    bool asks = false;
    std::uint64_t next = 0;  ///< Offset of the chunk that it is sent next.
  };
  void stage(StageWeights work);
  void feed(const FeedWeights& work);
  void on_chunk(const IncomingMessage& message);
  void on_whole();
  void fail(const Error& error);
  void forget_image();
  void ask_on();
  void turn_upstream();

  void on_child(const Exchange::Arrival& arrived);
  void on_hello(const Exchange::Arrival& arrived);
  void on_fetch(const PeerId& peer, Child& child, const FetchWeights& what);
  void catch_up(const PeerId& peer, Child& child);
  void sent_to(Child& child, std::uint64_t bytes);
  void turn_away(const PeerId& peer, Fetch::Refusal how, std::string why);

  Exchange exchange_;
  Upstream upstream_;
  const Clock& clock_;
  const Log& log_;
  std::optional<Relay::Ends> ends_;
  Duration timeout_{};
  std::set<std::string> admitted_;  ///< Open keys of those that may ask.
  std::map<PeerId, Child> children_;

  std::optional<WeightsHandle> image_;  ///< What is here, or arriving.
  std::vector<RelayAddress> sources_;
  std::optional<Fetch> fetch_;          ///< Arriving.
  std::optional<SharedBuffer> memory_;  ///< Whole.
  std::optional<MappedBuffer> whole_;
  bool moved_ = false;
};

}  // namespace temper::actors
