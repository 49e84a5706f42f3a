#pragma once

#include "actors/server/server_api.hpp"

#include <fmt/format.h>

namespace temper::actors {

/// Most tokens per request: new weights have to wait for the end of a request.
inline constexpr std::int64_t kMostPerCall = 256;

/// A server that can only generate: it cannot abort requests, pause, report its weights or release
/// memory.
class PlainServerApi : public ServerApi {
 public:
  std::int64_t most_per_call() const override { return kMostPerCall; }
  std::optional<ServerCall> pause() const override { return std::nullopt; }
  std::optional<ServerCall> resume() const override { return std::nullopt; }
  std::vector<ServerCall> abort(std::span<const std::string>) const override { return {}; }
  Result<std::vector<ServerCall>> release(ServerMemory) const override {
    return Error{ErrorCode::Unsupported, fmt::format("{} cannot release memory", what_)};
  }
  std::vector<ServerCall> regain(ServerMemory) const override { return {}; }
  std::vector<ServerCall> wake() const override { return {}; }
  std::optional<ServerCall> version() const override { return std::nullopt; }
  Result<std::string> read_version(std::string_view) const override {
    return Error{ErrorCode::Unsupported, "the server does not report its weights"};
  }

 protected:
  /// `what`: for messages, such as "a llama.cpp server".
  PlainServerApi(ServerSampling sampling, std::string_view what)
      : ServerApi(std::move(sampling)), what_(what) {}

 private:
  const std::string_view what_;
};

}  // namespace temper::actors
