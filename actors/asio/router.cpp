#include "actors/asio/router.hpp"

#include "actors/asio/asio.hpp"

namespace temper::actors {
namespace {

/// Messages handled per turn of the loop, so that timers and other sockets get theirs.
constexpr int kBatch = 256;

}  // namespace

// The descriptor of a ZeroMQ socket signals an edge, and any send or receive may consume it. So the
// loop waits on it only when ZMQ_EVENTS says that nothing is there, and asks again after each send.
struct AsioRouter::Impl : std::enable_shared_from_this<Impl> {
  Impl(boost::asio::io_context& loop, RouterSocket s, std::function<void(Received)> callback)
      : io(loop),
        socket(std::move(s)),
        descriptor(loop, socket.fd()),
        on_message(std::move(callback)) {}
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() { close(); }

  void close() {
    if (closed)
      return;
    closed = true;
    descriptor.release();  // The socket closes it.
    const RouterSocket closing = std::move(socket);
  }

  /// Waits for the next edge, or comes back soon if something is there already.
  void rearm() {
    if (closed || drain_posted)
      return;
    if (socket.readable()) {
      drain_posted = true;
      boost::asio::post(io, [self = shared_from_this()] {
        self->drain_posted = false;
        self->drain();
      });
      return;
    }
    if (waiting)
      return;
    waiting = true;
    descriptor.async_wait(descriptor.wait_read,
                          [self = shared_from_this()](const boost::system::error_code& error) {
                            self->waiting = false;
                            if (!error)
                              self->drain();
                          });
  }

  void drain() {
    for (int i = 0; i < kBatch && !closed; ++i) {
      auto message = socket.try_receive();
      if (!message)
        break;
      on_message(*std::move(message));
    }
    rearm();
  }

  boost::asio::io_context& io;
  RouterSocket socket;
  boost::asio::posix::stream_descriptor descriptor;
  std::function<void(Received)> on_message;
  bool waiting = false;
  bool drain_posted = false;
  bool closed = false;
};

AsioRouter::AsioRouter(boost::asio::io_context& io,
                       RouterSocket socket,
                       std::function<void(Received)> on_message)
    : impl_(std::make_shared<Impl>(io, std::move(socket), std::move(on_message))) {
  impl_->rearm();
}

AsioRouter::~AsioRouter() {
  impl_->close();
}

Status AsioRouter::send(const PeerId& peer, std::string head, std::string body) {
  Status sent = impl_->socket.send(peer, std::move(head), std::move(body));
  impl_->rearm();
  return sent;
}

void AsioRouter::drop(const PeerId& peer, std::string_view why) {
  impl_->socket.drop(peer, why);
}

const std::string& AsioRouter::endpoint() const {
  return impl_->socket.endpoint();
}

const TransportStats& AsioRouter::stats() const {
  return impl_->socket.stats();
}

}  // namespace temper::actors
