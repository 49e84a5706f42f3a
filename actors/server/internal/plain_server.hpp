#pragma once

#include "actors/server/server_api.hpp"

#include <fmt/format.h>

namespace temper::actors {

/// What waits for the end of an answer when new weights come, waits for this much at most.
inline constexpr std::int64_t kMostPerCall = 256;

/// A server that only generates: nothing that runs can be ended, it knows no pause, does not name
/// its weights and gives no memory back.
class PlainServerApi : public ServerApi {
 public:
  std::int64_t most_per_call() const override { return kMostPerCall; }
  std::optional<ServerCall> pause() const override { return std::nullopt; }
  std::optional<ServerCall> resume() const override { return std::nullopt; }
  std::vector<ServerCall> abort(std::span<const std::string>) const override { return {}; }
  Result<std::vector<ServerCall>> release(ServerMemory) const override {
    return Error{ErrorCode::Unsupported, fmt::format("{} gives no memory back", what_)};
  }
  std::vector<ServerCall> regain(ServerMemory) const override { return {}; }
  std::vector<ServerCall> wake() const override { return {}; }
  std::optional<ServerCall> version() const override { return std::nullopt; }
  Result<std::string> read_version(std::string_view) const override {
    return Error{ErrorCode::Unsupported, "the server does not name its weights"};
  }

 protected:
  /// `what`: "a llama.cpp server".
  PlainServerApi(ServerSampling sampling, std::string_view what)
      : ServerApi(std::move(sampling)), what_(what) {}

 private:
  const std::string_view what_;
};

}  // namespace temper::actors
