// Who may pass the handshake of a socket with CURVE: the peers whose key was let in, no other. On a
// thread of its own, so that it answers and closes whatever the socket's owner is doing.
//
// What it bounds before a peer has proved itself: connections whose first message has not come are
// at most kPending and those expected with each key; beyond that the oldest is closed. Each can
// hold one frame of `max_frame` for `handshake`, by options of the socket.
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

class Door {
 public:
  static constexpr std::size_t kPending = 64;

  /// Before `socket` is bound. It and `context` outlive this.
  static Result<std::unique_ptr<Door>> open(zmq::context_t& context,
                                            zmq::socket_t& socket,
                                            const Log& log);
  /// On the thread that has the socket.
  ~Door();

  /// `key` in ZeroMQ's text form; its messages carry `name`.
  void let_in(const std::string& key, const std::string& name, std::size_t connections = 1);
  /// No connection is made with it any more.
  void keep_out(const std::string& key);
  /// A message came through this connection: it has proved itself.
  void proved(int fd);
  /// Whether proved() would tell something new.
  bool asks() const { return waiting_.load(std::memory_order_relaxed) > 0; }
  /// Handshakes that failed, keys that are not let in, connections closed to make room.
  std::uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }

 private:
  Door(zmq::context_t& context, zmq::socket_t& socket, WakeUp wake, const Log& log);
  void serve();
  void answer();
  void watch();
  void make_room();
  void refuse(std::string_view why);
  std::string find_key(const std::string& raw_key);

  const Log log_;
  zmq::socket_t& socket_;
  zmq::socket_t answers_;
  zmq::socket_t events_;
  WakeUp wake_;
  std::atomic<bool> closing_{false};
  std::atomic<std::uint64_t> refused_{0};
  std::atomic<std::size_t> waiting_{0};  ///< As pending_.

  Mutex mutex_;
  struct Guest {
    std::string name;
    std::size_t connections = 0;
  };
  std::map<std::string, Guest> let_in_ TEMPER_GUARDED_BY(mutex_);  ///< By raw key.
  std::map<std::string, Guest> kept_out_ TEMPER_GUARDED_BY(mutex_);
  std::set<int> proved_ TEMPER_GUARDED_BY(mutex_);  ///< Since the last look.

  std::set<std::string> named_;  ///< Of the thread: keys whose refusal was logged.
  std::deque<int> pending_;      ///< Of the thread: connections, oldest first.
  std::thread thread_;
};

}  // namespace temper::actors::detail
