// An inference server that answers at once, for benchmarks of its clients: vLLM's routes over
// epoll, in its own process. All responses have the same tokens, in the format of vLLM 0.32; only
// the request id changes.
#pragma once

#include "core/check.hpp"
#include "core/file_descriptor.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

namespace temper::bench {

class InstantServer {
 public:
  /// `tokens`: tokens per response.
  explicit InstantServer(int tokens) : listener_(listen_somewhere()) {
    sockaddr_in address{};
    socklen_t size = sizeof address;
    TEMPER_CHECK(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0,
                 "a socket that listens has a name");
    port_ = ntohs(address.sin_port);
    process_ = ::fork();
    TEMPER_CHECK(process_ >= 0, "the process starts");
    if (process_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      serve(tokens);
    }
  }
  ~InstantServer() {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  InstantServer(const InstantServer&) = delete;
  InstantServer& operator=(const InstantServer&) = delete;

  std::string address() const { return fmt::format("http://127.0.0.1:{}", port_); }

 private:
  static FileDescriptor listen_somewhere() {
    FileDescriptor fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    TEMPER_CHECK(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
                     ::listen(fd.get(), 4096) == 0,
                 "a port of this machine is free");
    return fd;
  }

  [[noreturn]] void serve(int tokens) {
    const FileDescriptor poll(::epoll_create1(EPOLL_CLOEXEC));
    watch(poll.get(), listener_.get());
    std::unordered_map<int, std::string> connections;
    std::array<epoll_event, 256> events;
    make_answer(tokens);
    for (;;) {
      const int n = ::epoll_wait(poll.get(), events.data(), events.size(), -1);
      for (int i = 0; i < n; ++i) {
        const int fd = events[static_cast<std::size_t>(i)].data.fd;
        if (fd == listener_.get()) {
          const int made = ::accept4(fd, nullptr, nullptr, SOCK_CLOEXEC);
          const int on = 1;
          ::setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
          watch(poll.get(), made);
        } else if (!read_from(fd, connections[fd])) {
          connections.erase(fd);
          ::close(fd);
        }
      }
    }
  }
  static void watch(int poll, int fd) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    ::epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event);
  }

  /// False: the connection was closed.
  bool read_from(int fd, std::string& text) {
    std::array<char, 65536> piece;
    const ssize_t size = ::recv(fd, piece.data(), piece.size(), 0);
    if (size <= 0)
      return false;
    text.append(piece.data(), static_cast<std::size_t>(size));
    for (;;) {
      const std::size_t head = text.find("\r\n\r\n");
      if (head == std::string::npos)
        return true;
      const std::size_t whole = head + 4 + length_of(std::string_view(text).substr(0, head));
      if (text.size() < whole)
        return true;
      answer(fd, std::string_view(text).substr(0, whole), head + 4);
      text.erase(0, whole);
    }
  }
  static std::size_t length_of(std::string_view head) {
    std::size_t at = head.find("Content-Length:"), length = 0;
    if (at != std::string_view::npos) {
      at = head.find_first_of("0123456789", at);
      std::from_chars(head.data() + at, head.data() + head.size(), length);
    }
    return length;
  }

  void answer(int fd, std::string_view request, std::size_t body) {
    const std::string_view target = request.substr(request.find(' ') + 1, 40);
    if (target.starts_with("/inference/"))
      return send(fd, generated_);
    if (target.starts_with("/update_weight_version")) {
      const std::size_t begin = request.find(":\"", body) + 2;
      label_ = request.substr(begin, request.find('"', begin) - begin);
      make_answer(tokens_);
    }
    if (target.starts_with("/v1/models"))
      return send(fd, whole(R"({"data":[{"id":"policy"}]})"));
    send(fd, whole(fmt::format(R"({{"weight_version":"{}"}})", label_)));
  }
  void make_answer(int tokens) {
    tokens_ = tokens;
    std::string ids, content;
    for (int i = 0; i < tokens; ++i) {
      const int id = i + 1 == tokens ? 1 : 100 + 7 * i % 30'000;
      ids += fmt::format("{}{}", i == 0 ? "" : ",", id);
      content += fmt::format(
          R"({0}{{"token_id":{1},"logprob":-{2}.{3}28179693222046,"rank":{4},"top_logprobs":)"
          R"([{{"token_id":{1},"logprob":-{2}.{3}28179693222046,"rank":{4}}}]}})",
          i == 0 ? "" : ",",
          id,
          i % 3,
          1 + i % 9,
          2 + i % 5);
    }
    generated_ = whole(fmt::format(
        R"({{"request_id":"generate-tokens-1","model":"policy","created":1795445968,"usage":)"
        R"({{"prompt_tokens":128,"total_tokens":384,"completion_tokens":256}},"prompt_logprobs":null,)"
        R"("choices":[{{"index":0,"finish_reason":"stop","stop_reason":null,"token_ids":[{}],)"
        R"("weight_versions":[{{"version":"{}","start":0,"end":{}}}],"logprobs":{{"content":[{}]}}}}]}})",
        ids,
        label_,
        tokens,
        content));
  }
  static std::string whole(std::string_view body) {
    return fmt::format(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
        body.size(),
        body);
  }
  static void send(int fd, std::string_view text) {
    while (!text.empty()) {
      const ssize_t size = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
      if (size <= 0)
        return;
      text.remove_prefix(static_cast<std::size_t>(size));
    }
  }

  FileDescriptor listener_;
  int port_ = 0;
  pid_t process_ = 0;
  // State of the server process.
  int tokens_ = 0;
  std::string label_ = "default", generated_;
};

}  // namespace temper::bench
