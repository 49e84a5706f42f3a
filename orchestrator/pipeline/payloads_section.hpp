// Where tensors of responses are stored.
#pragma once

#include "core/describe.hpp"

#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace temper {
namespace orchestrator {

enum class TensorStoreKind { Shm, Redis };

struct PayloadsSection {
  TensorStoreKind store = TensorStoreKind::Shm;
  std::string redis;
  std::string redis_ca;
  Duration wait = std::chrono::seconds(30);
};

void describe(auto& v, PayloadsSection& c) {
  v.field(
      1,
      "store",
      c.store,
      {.doc = "`shm`: files in shared memory, for engines and a trainer on the orchestrator's "
              "host (`transport.kind: ipc`); `redis`: a Redis server that they all can reach."});
  v.field(
      2,
      "redis",
      c.redis,
      {.doc =
           "redis: HOST:PORT of the server, or rediss://HOST:PORT to reach it through TLS. "
           "Several servers, separated by commas, share the tensors between them. Their password "
           "is read from the environment variable `TEMPER_REDIS_PASSWORD` of the orchestrator.",
       .example = "10.0.0.7:6379"});
  v.field(
      3,
      "wait",
      c.wait,
      {.doc = "How long an engine waits for space, and an engine or the trainer for a server that "
              "does not answer, before the response or the trainer fails.",
       .min = Duration(0)});
  v.field(4,
          "redis_ca",
          c.redis_ca,
          {.doc = "rediss: PEM file of CA certificates that engines, the trainer and the "
                  "orchestrator trust besides those of their systems; empty: none.",
           .example = "/etc/ssl/redis-ca.pem"});
}

/// The environment variable that has the password of the server.
inline constexpr const char* kRedisPassword = "TEMPER_REDIS_PASSWORD";

}  // namespace orchestrator

template <>
struct EnumNames<orchestrator::TensorStoreKind> {
  using K = orchestrator::TensorStoreKind;
  static constexpr std::array<std::pair<K, std::string_view>, 2> value{
      {{K::Shm, "shm"}, {K::Redis, "redis"}}};
};

}  // namespace temper
