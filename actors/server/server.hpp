// One inference server: where it is, whether it works, and what may be asked of it. Started by us
// or by others; it may come late, die and come back. Not thread-safe.
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
  std::size_t index = 0;      ///< Which of the configuration's servers.
  std::string name;           ///< Of the actor.
  std::filesystem::path log;  ///< What a server that we start writes goes to the end of it.
  ServerSampling sampling;
  FolderModel model;
  bool takes_turns =
      false;  ///< Its cards are others' at times: it must be able to give memory back.
  std::size_t connections = 1;
  /// Requests of a control call, such as a load, are given up after this.
  Duration control_deadline = std::chrono::minutes(5);
  Duration probe_deadline = std::chrono::seconds(2);
  /// Called while a server that does not work yet is waited for.
  std::function<void()> on_wait{};
};

/// Weights in a folder, under the one name that the server is to say it has.
struct ServerVersion {
  std::string label;
  std::filesystem::path folder;
  Bytes bytes;  ///< Written for it; 0 where another had done so.
  Duration writing{};
  std::optional<Canary> canary;
};

class Server {
 public:
  /// Looks up nothing yet. Errors: no folder can be made for weights.
  static Result<std::unique_ptr<Server>> create(ServerOptions options,
                                                const Clock& clock,
                                                const Log& log);

  /// Writes an image into a folder named by its label.
  Result<ServerVersion> write(PolicyVersion version, std::span<const std::byte> image);
  /// Removes versions that are no longer needed, now that `current` is: of a folder of its own all
  /// but `current` and `first`; of one that others use too what was current long ago.
  void remove_old(const std::string& current, const std::string& first);

  /// One look: finds the address again, starts the process if it is ours and not there (with the
  /// weights of `model`), asks for its health. False: not now. Error: it cannot be this server
  /// (a route that is missing, an address that is none).
  Result<bool> look(const std::filesystem::path& model);
  /// look() until it works. Error: `patience` of the configuration is over; says what was last
  /// seen.
  Status await(const std::filesystem::path& model);

  /// Asks where control goes; the answer's body. Errors: no answer (Unavailable), another status
  /// than 2xx (Internal), with what the server said.
  Result<std::string> ask(const ServerCall& call, std::optional<Duration> deadline = {});
  /// The same where requests go.
  Result<std::string> ask_data(const ServerCall& call, std::optional<Duration> deadline = {});
  /// The label of the weights that it has: as it says; or, of one that does not name its weights,
  /// that of trust(), as long as it is certainly the one that had them then. Error: it is not.
  Result<std::string> label();
  /// Log-probs, at temperature 1, of tokens[first...]. Requires: first >= 1.
  Result<std::vector<float>> score(std::span<const std::int32_t> tokens, std::size_t first = 1);

  /// Whether it is a process of ours that runs, started with the weights of `version`.
  bool runs(const ServerVersion& version);
  /// Starts it anew, with these weights, and waits until it works. Requires: it is ours.
  Status start_with(const ServerVersion& version);
  /// Of a server that does not name its weights: those of `version` came into it just now. It is
  /// known again by its process, where it is ours and takes weights at its start only; else by the
  /// canary of the version; where that has none, by what it says of the canary's tokens now.
  Status trust(const ServerVersion& version);

  /// Gives memory back, or takes it again. Requires: nothing runs on it. Error: what it said.
  Status release(ServerMemory what);
  Status regain(ServerMemory what);

  HttpClient& data() { return *data_; }
  const ServerApi& api() const { return *api_; }
  const ServerOptions& options() const { return options_; }
  const Clock& clock() const { return *clock_; }
  const Log& log() const { return *log_; }

 private:
  Server(ServerOptions options, const Clock& clock, const Log& log);
  Status locate();
  Status ask_all(const std::vector<ServerCall>& calls);
  Status restart(const std::filesystem::path& model);
  /// What there is to know of it once it works: its routes, the name of its model, what it can do.
  /// False: it cannot be asked yet.
  Result<bool> acquaint();
  Result<bool> probe();
  Result<std::string> trusted_label();

  const ServerOptions options_;
  const Clock* clock_;
  const Log* log_;
  std::unique_ptr<ServerApi> api_;
  std::filesystem::path folder_;
  std::optional<TemporaryFolder> own_folder_;
  std::deque<std::string> recent_;  ///< Labels that were current, the newest last.
  std::optional<ServerProcess> process_;
  std::filesystem::path started_with_;  ///< Folder of the weights.
  std::uint64_t starts_ = 0;
  struct Trusted {
    std::string label;
    std::uint64_t start = 0;
    std::optional<Canary> canary;
  };
  std::optional<Trusted> trusted_;
  std::unique_ptr<HttpClient> data_, control_;
  std::optional<Url> data_url_, control_url_;
  std::string last_seen_ = "nothing yet";
  Time next_start_{};
  Duration pause_ = std::chrono::milliseconds(100);  ///< Before the next start.
};

}  // namespace temper::actors
