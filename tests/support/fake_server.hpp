// An inference server that misbehaves as a test tells it (fake_server.py), and weights that both
// sides can compute with: the log-probs of the token after t are log softmax of the first V numbers
// of row t of the embedding.
#pragma once

#include "actors/guard/guarded_process.hpp"
#include "actors/protocol/engine_config.hpp"
#include "actors/server/http_client.hpp"
#include "actors/server/version_folder.hpp"
#include "core/json_document.hpp"

#include <gtest/gtest.h>
#include <sys/types.h>

#include <string>
#include <vector>

namespace temper::test {

inline constexpr std::int32_t kTableTokens = 12;  ///< V; token 1 ends a response.

/// The model whose embedding is a table.
actors::FolderModel table_model();

/// The log-probs of a table made from `seed`.
class Table {
 public:
  explicit Table(std::uint64_t seed);
  /// log P(next | token)
  float logprob(std::int32_t token, std::int32_t next) const;
  actors::Canary canary() const;
  /// A safetensors image, as a trainer publishes it; with its canary in the metadata.
  std::string image(bool with_canary = true) const;

 private:
  std::vector<float> embedding_;
};

class FakeServer {
 public:
  using Arguments = std::vector<std::string>;
  explicit FakeServer(actors::EngineKind kind, const Arguments& more = {});

  std::string address() const;
  pid_t pid() const { return pid_; }
  int port() const { return port_; }
  /// {"faults": {...}, "hold_after": ..., ...}
  void tell(const std::string& json);
  nlohmann::json state();
  /// SIGKILL, and gone when this returns.
  void kill();
  /// Another one at the same address.
  void start_again();
  /// Until so many responses were begun and each has ended or is held.
  void await_begun(int count);

 private:
  void start(int port);

  const actors::EngineKind kind_;
  const Arguments more_;
  std::optional<actors::GuardedProcess> process_;
  std::unique_ptr<actors::HttpClient> client_;
  pid_t pid_ = 0;
  int port_ = 0;
};

/// The kinds that load weights by routes, which all have a fake.
std::vector<actors::EngineKind> servers_with_routes();

/// The words that start one, for engine.start: `{model}` and `{port}` in them.
std::string fake_server_command(actors::EngineKind kind, const std::string& more);

}  // namespace temper::test
