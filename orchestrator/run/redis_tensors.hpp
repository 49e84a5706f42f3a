// Tensors of responses in Redis servers, for engines and trainers on any host. A tensor is a hash:
// its fields 0, 1, 2, ... are chunks of kTensorChunk bytes, so that no value comes near the limit
// of 512 MB. The hash of its key chooses the server. Engines write with a time to live, which the
// store extends until it removes the tensor: what a killed run leaves behind expires.
#pragma once

#include "core/log.hpp"
#include "orchestrator/pipeline/pipeline_config.hpp"
#include "orchestrator/run/redis_connection.hpp"
#include "orchestrator/run/tensor_store.hpp"

#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

namespace temper::orchestrator {

/// As in python/src/temper/stores.py.
inline constexpr std::uint64_t kTensorChunk = std::uint64_t{1} << 20;

struct RedisTensorsOptions {
  std::vector<RedisAddress> servers;  ///< At least one; all with the same password and TLS.
  std::string run;                    ///< Name of the run, part of all keys.
  Duration wait{};                    ///< How long engines and the trainer wait for a server.
  Duration lease = std::chrono::minutes(10);
};

class RedisTensors final : public TensorStore {
 public:
  /// Its keys have a prefix of their own. Errors: those of RedisConnection::ask().
  static Result<std::unique_ptr<RedisTensors>> create(RedisTensorsOptions options, const Log& log);
  ~RedisTensors() override;

  /// Errors: two of the servers are one; those of RedisConnection::ask().
  Status check_distinct();

  actors::TensorPlace place() const override;
  std::vector<bool> find(std::span<const actors::Tensor> tensors) override;
  void take(std::vector<actors::Tensor>& tensors) override;
  void refuse(std::span<const actors::Tensor> tensors) override;
  void remove(std::span<const actors::Tensor> tensors) override;
  void keep_only(std::span<const actors::Tensor> tensors) override;
  /// A reader removes a tensor that it finds damaged.
  bool has(std::span<const actors::Tensor> tensors) override;
  void refresh(Time now) override;

 private:
  RedisTensors(RedisTensorsOptions options, const Log& log);
  bool accepts(const std::string& name) const override;
  std::string key_of(const actors::Tensor& t) const;
  std::size_t server_of(std::string_view key) const;
  /// Commands whose second word is a key. nullopt: its server does not answer, or refuses.
  std::vector<std::optional<std::int64_t>> ask(std::vector<RedisCommand> commands);
  void say(std::size_t server, const std::optional<Error>& why);
  void remove_keys(const std::vector<std::string>& keys);

  const RedisTensorsOptions options_;
  const Log log_;
  std::string prefix_;
  const RealClock clock_;
  struct Server {
    std::unique_ptr<RedisConnection> connection;
    bool away = false;  ///< It did not do what it was asked last.
  };
  std::vector<Server> servers_;
  std::unordered_set<std::string> taken_;  ///< Keys.
  Time refresh_at_{};
};

/// The store in the servers of `payloads.redis`. Requires: `payloads.store: redis`. Error: one does
/// not answer, refuses the run, or is named twice; names the key and the next step.
Result<std::unique_ptr<RedisTensors>> open_redis_tensors(const PipelineConfig& config,
                                                         const Log& log);

}  // namespace temper::orchestrator
