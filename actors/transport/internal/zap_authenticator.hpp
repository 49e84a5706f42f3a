// Authenticates the peers of a CURVE socket (ZeroMQ's ZAP handler): only peers whose key was let in
// pass the handshake. Runs on its own thread, so that it answers while the socket's owner is busy.
//
// It also bounds the resources of unauthenticated peers. At most kPending connections, plus those
// expected for each key, may exist without having sent a message; beyond that the oldest is closed.
// Socket options limit each of them to one frame of `max_frame` for the time `handshake`.
#pragma once

#include "actors/transport/wake_up.hpp"
#include "core/log.hpp"
#include "core/thread_annotations.hpp"

#include <zmq.hpp>

#include <atomic>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <thread>

namespace temper::actors::detail {

class ZapAuthenticator {
 public:
  static constexpr std::size_t kPending = 64;

  /// Requires: `socket` is not bound yet; `socket` and `context` outlive the authenticator.
  static Result<std::unique_ptr<ZapAuthenticator>> open(zmq::context_t& context,
                                                        zmq::socket_t& socket,
                                                        const Log& log);
  /// Must run on the thread that owns the socket.
  ~ZapAuthenticator();

  /// Admits `key` (in ZeroMQ's text form); messages received with it carry `name`. Thread-safe.
  void let_in(const std::string& key, const std::string& name, std::size_t connections = 1);
  /// Refuses new connections with this key. Thread-safe.
  void keep_out(const std::string& key);
  /// A message has arrived on this connection, so its peer is authenticated.
  void authenticated(int fd);
  /// True if some connections have not sent a message yet.
  bool has_pending() const { return pending_count_.load(std::memory_order_relaxed) > 0; }
  /// Number of failed handshakes, refused keys, and connections closed to limit their number.
  std::uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }

 private:
  ZapAuthenticator(zmq::context_t& context, zmq::socket_t& socket, WakeUp wake, const Log& log);
  void serve();
  void answer();
  void watch();
  void close_excess();
  void refuse(std::string_view why);
  std::string find_key(const std::string& raw_key);

  const Log log_;
  zmq::socket_t& socket_;
  zmq::socket_t answers_;
  zmq::socket_t events_;
  WakeUp wake_;
  std::atomic<bool> closing_{false};
  std::atomic<std::uint64_t> refused_{0};
  std::atomic<std::size_t> pending_count_{0};  ///< Copy of pending_.size() for other threads.

  Mutex mutex_;
  struct AllowedKey {
    std::string name;
    std::size_t connections = 0;
  };
  std::map<std::string, AllowedKey> allowed_ TEMPER_GUARDED_BY(mutex_);  ///< Keyed by the raw key.
  std::map<std::string, AllowedKey> revoked_ TEMPER_GUARDED_BY(mutex_);
  std::set<int> authenticated_ TEMPER_GUARDED_BY(mutex_);  ///< Connections authenticated since the
                                                           ///< thread last checked.

  std::set<std::string> named_;  ///< Keys whose refusal was logged; used by the thread only.
  std::deque<int> pending_;      ///< Unauthenticated connections, oldest first; used by the thread
                                 ///< only.
  std::thread thread_;
};

}  // namespace temper::actors::detail
