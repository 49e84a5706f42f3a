// A Redis server of a test, with or without TLS.
#pragma once

#include "orchestrator/run/redis_connection.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <string>
#include <vector>

namespace temper::test {

/// A port that nobody listens on.
inline std::uint16_t free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  EXPECT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  ::close(fd);
  return ntohs(address.sin_port);
}

class RedisServer {
 public:
  RedisServer() = default;
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;
  ~RedisServer() { kill(); }

  /// With TLS. `certificate`: a file in PEM without its ending; its key ends in .key.
  void use_tls(const std::string& certificate) {
    tls_ = {"--port",
            "0",
            "--tls-port",
            std::to_string(port_),
            "--tls-cert-file",
            certificate + ".pem",
            "--tls-key-file",
            certificate + ".key",
            "--tls-auth-clients",
            "no"};
  }

  /// Without data. False: there is no redis-server.
  bool start() {
    std::array<int, 2> out{};
    EXPECT_EQ(::pipe2(out.data(), O_CLOEXEC), 0);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    std::vector<std::string> words{"redis-server",
                                   "--port",
                                   std::to_string(port_),
                                   "--bind",
                                   "127.0.0.1",
                                   "--save",
                                   "",
                                   "--requirepass",
                                   kPassword};
    words.insert(words.end(), tls_.begin(), tls_.end());
    std::vector<char*> argv;
    argv.reserve(words.size() + 1);
    for (std::string& word : words)
      argv.push_back(word.data());
    argv.push_back(nullptr);
    const int error =
        ::posix_spawnp(&pid_, "redis-server", &actions, nullptr, argv.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(out[1]);
    std::string said;
    std::array<char, 4096> piece{};
    ssize_t n = 1;
    while (error == 0 && n > 0 && said.find("Ready to accept") == std::string::npos) {
      n = ::read(out[0], piece.data(), piece.size());
      said.append(piece.data(), static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
    }
    output_ = out[0];  // open, so that the server can write on
    EXPECT_TRUE(error != 0 || n > 0) << said;
    return error == 0 && n > 0;
  }

  void kill() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
      ::close(output_);
    }
    pid_ = 0;
  }

  orchestrator::RedisAddress address() const { return {"127.0.0.1", port_, kPassword}; }

 private:
  static constexpr const char* kPassword = "correct horse";

  const std::uint16_t port_ = free_port();
  std::vector<std::string> tls_;  ///< Options.
  pid_t pid_ = 0;
  int output_ = -1;
};

}  // namespace temper::test
