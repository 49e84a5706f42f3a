// One inference server: its address, its health, and the requests to it. It may be started by
// Temper or by others, appear late, die and come back. Not thread-safe.
#pragma once

#include "actors/server/http_client.hpp"
#include "actors/server/server_api.hpp"
#include "actors/server/server_process.hpp"
#include "actors/server/version_folder.hpp"
#include "core/clock.hpp"
#include "core/log.hpp"
#include "core/temporary_folder.hpp"

#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

namespace temper::actors {

struct ServerOptions {
  EngineConfig config;
  std::size_t index = 0;      ///< Index among the configured servers.
  std::string name;           ///< Name of the actor.
  std::filesystem::path log;  ///< Output of a server that we start is appended to this file.
  ServerSampling sampling;
  FolderModel model;
  bool takes_turns = false;  ///< Its cards are time-shared: it must be able to release its memory.
  std::size_t connections = 1;
  /// Deadline of control requests, such as loading weights.
  Duration control_deadline = std::chrono::minutes(5);
  Duration probe_deadline = std::chrono::seconds(2);
  /// Called repeatedly while waiting for the server.
  std::function<void()> on_wait{};
};

/// Weights in a folder, with the label that the server must report for them.
struct ServerVersion {
  std::string label;
  std::filesystem::path folder;
  Bytes bytes;  ///< Bytes written; 0 if another process had written the folder.
  Duration writing{};
  std::optional<Canary> canary;
};

class Server {
 public:
  /// Does not contact the server yet. Error: the weights folder cannot be created.
  static Result<std::unique_ptr<Server>> create(ServerOptions options,
                                                const Clock& clock,
                                                const Log& log);

  /// Writes an image into a folder named after its label. Errors: see write_version_folder() and
  /// canary_of().
  Result<ServerVersion> write(PolicyVersion version, std::span<const std::byte> image);
  /// The same for the base model, with which a server is started: always all weights.
  Result<ServerVersion> write_base(std::span<const std::byte> image);
  /// Removes obsolete versions now that `current` is in use. In a private folder: all except
  /// `current` and `first`; in a shared folder: those that were current long ago.
  void remove_old(const std::string& current, const std::string& first);

  /// Checks the server once: looks up its address, starts the process if it is ours and not running
  /// (with the weights of `model`), and asks for its health. Returns false if it is not ready.
  /// Error: the server can never work (a missing route, an invalid address).
  Result<bool> look(const std::filesystem::path& model);
  /// Repeats look() until the server works. Error Timeout after `engine.patience`, with the last
  /// observation.
  Status await(const std::filesystem::path& model);

  /// Sends a request to the control address and returns the body. Errors: Unavailable if there is
  /// no response; Internal for a status other than 2xx, with the server's message.
  Result<std::string> ask(const ServerCall& call, std::optional<Duration> deadline = {});
  /// The same, errors included, for the data address.
  Result<std::string> ask_data(const ServerCall& call, std::optional<Duration> deadline = {});
  /// The label of the server's current weights: as it reports; or, for a server that does not
  /// report them, the label of trust() as long as it is certainly unchanged. Error: it may have
  /// changed.
  Result<std::string> label();
  /// Log-probs of tokens[first...] at temperature 1. Requires: first >= 1.
  Result<std::vector<float>> score(std::span<const std::int32_t> tokens, std::size_t first = 1);

  /// True if it is our running process, started with the weights of `version`.
  bool runs(const ServerVersion& version);
  /// Restarts the server with these weights and waits until it works. Requires: it is our process.
  Status start_with(const ServerVersion& version);
  /// For a server that does not report its weights: records that `version` has just been loaded.
  /// Later label() recognizes it by its process, if it is ours and loads weights only at its start;
  /// otherwise by the canary of the version; without a canary, by its current log-probs. Errors:
  /// those of score(), if it is needed; then label() recognizes no weights.
  Status trust(const ServerVersion& version);
  /// If versions are adapters: later requests are computed with this one, which was just loaded.
  void use(const ServerVersion& version);
  /// If versions are adapters: the server drops this one. An error is logged, as nothing depends on
  /// it.
  void forget(const ServerVersion& version);

  /// Releases, or re-allocates, device memory. Requires: no request is running. Error: the server's
  /// message.
  Status release(ServerMemory what);
  Status regain(ServerMemory what);

  HttpClient& data() { return *data_; }
  const ServerApi& api() const { return *api_; }
  const ServerOptions& options() const { return options_; }
  const Clock& clock() const { return *clock_; }
  const Log& log() const { return *log_; }

 private:
  Server(ServerOptions options, const Clock& clock, const Log& log);
  Result<ServerVersion> write(PolicyVersion version,
                              std::span<const std::byte> image,
                              const FolderModel& model);
  Status locate();
  Status ask_all(const std::vector<ServerCall>& calls);
  Status restart(const std::filesystem::path& model);
  /// Learns the routes, the model name and the capabilities of a working server. Returns false if
  /// it cannot be asked yet.
  Result<bool> learn_capabilities();
  Result<bool> probe();
  Result<std::string> trusted_label();

  const ServerOptions options_;
  const Clock* clock_;
  const Log* log_;
  std::unique_ptr<ServerApi> api_;
  std::filesystem::path folder_;
  std::optional<TemporaryFolder> own_folder_;
  std::deque<std::string> recent_;  ///< Labels that were current, newest last.
  std::optional<ServerProcess> process_;
  std::filesystem::path started_with_;  ///< Weights folder with which the process was started.
  std::uint64_t starts_ = 0;
  struct TrustedWeights {
    std::string label;
    std::uint64_t start = 0;
    std::optional<Canary> canary;
  };
  std::optional<TrustedWeights> trusted_;
  std::unique_ptr<HttpClient> data_, control_;
  std::optional<Url> data_url_, control_url_;
  std::string last_seen_ = "nothing yet";
  Time next_start_{};
  Duration pause_ = std::chrono::milliseconds(100);  ///< Delay before the next start.
};

}  // namespace temper::actors
