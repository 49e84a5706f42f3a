// The server engine; engine.cpp (responses) and engine_versions.cpp (weights, recovery) implement
// this class.
#pragma once

#include "rollout/server/engine.hpp"
#include "rollout/server/requests.hpp"

#include <filesystem>
#include <mutex>

namespace temper::rollout::internal {

/// Longest wait for answers at a time, while there are none.
inline constexpr Duration kAnswerPatience = std::chrono::milliseconds(5);

class HttpEngine final : public ServerEngine {
 public:
  HttpEngine(std::unique_ptr<actors::Server> server,
             const ServerEngineOptions& options,
             actors::ServerVersion first);
  /// Waits for the server, takes it over and warms it up: at first, and after it was restarted. A
  /// server that dies meanwhile is waited for again. Errors: Timeout after `engine.patience`;
  /// Unavailable if the server went away several times; InvalidInput if it cannot generate.
  Status meet() { return meet(folder()); }

  void add(GenerationRequest request) override;
  Result<StepResult> step() override;
  std::size_t load() const override { return responses_.size() + settled_.size(); }
  std::size_t in_flight() const override { return responses_.under_way(); }
  std::vector<Generation> interrupt() override { return remove_responses(responses_.ids()); }
  std::vector<Generation> withdraw(std::span<const ResponseId> ids) override;
  void cancel(std::span<const ResponseId> ids) override;

  Status stage(PolicyVersion version, std::span<const std::byte> weights) override;
  Status commit(PolicyVersion version) override;
  PolicyVersion version() const override { return version_; }

  Status free_kv() override;
  Status allocate_kv() override;
  Status free_weights() override;
  EngineMemory memory() const override;
  const ServerWaste& waste() const override { return waste_; }

 private:
  enum class State { Working, Suspect, Away };

  std::size_t limit_of(const GenerationRequest& request) const;
  bool ends(const ServerResponse& response, std::int32_t token) const;
  void dispatch();
  void send(ServerResponse& response);
  void collect(Duration patience);
  bool label_is_ours();
  void settle(ServerResponse& response, actors::HttpAnswer answer, bool label_known);
  void cut_at_end(const ServerResponse& response, actors::GenerateReply& reply) const;
  Status accept(const ServerResponse& response,
                const actors::GenerateReply& reply,
                bool label_known);
  void append(ServerResponse& response, actors::GenerateReply reply);
  void again(ServerResponse& response, std::string_view why);
  void finish(ResponseId id, actors::FinishReason finish, std::string_view failure = {});
  bool stands_comparison(ServerResponse& response);
  void drain();
  Status load_version(const actors::ServerVersion& next,
                      const std::optional<actors::Canary>& before);
  Status probe();
  Status recover();
  Status find_released();
  Status meet(const std::filesystem::path& model);
  Status load_released(const actors::ServerVersion& next);
  void log_commit(const actors::ServerVersion& next, const actors::CommitReport& report) const;
  void suspect(std::string_view why);
  void read_load();
  std::vector<Generation> remove_responses(const std::vector<ResponseId>& ids);
  void abort(const std::vector<ResponseId>& ids);
  /// The model that a server is started with which is to have this version next.
  const std::filesystem::path& start_folder(const actors::ServerVersion& version) const {
    return server_->options().sampling.adapters ? first_.folder : version.folder;
  }
  const std::filesystem::path& folder() const {
    return current_ ? start_folder(*current_) : first_.folder;
  }
  Time now() const { return server_->clock().now(); }

  const ServerEngineOptions options_;
  std::unique_ptr<actors::Server> server_;
  InFlightWindow window_;
  const actors::ServerVersion first_;
  std::string prefix_;  ///< Of request ids; unique to this engine.
  std::uint64_t calls_ = 0;

  ServerResponses responses_;
  std::vector<Generation> settled_;  ///< Finished, not reported yet.
  State state_ = State::Working;
  Time away_since_{}, next_look_{}, next_load_{}, send_again_{};
  bool may_compare_ = false;  ///< False while the server may be paused and would not answer.
  std::size_t compared_ = 0;
  ServerWaste waste_;

  bool weights_here_ = true, cache_here_ = true;  ///< Present on the server's devices.
  std::string released_label_;  ///< Label of the server's weights when it released its memory.
  /// Canary of the version before current_, until current_ is verified.
  std::optional<actors::Canary> before_;
  PolicyVersion version_;
  /// The server version of version(); none before the first commit.
  std::optional<actors::ServerVersion> current_;
  mutable std::mutex staging_;
  std::optional<std::pair<PolicyVersion, actors::ServerVersion>> staged_;  ///< Under staging_.
};

}  // namespace temper::rollout::internal
