// The differences between inference servers: routes, requests, and the meaning of responses. No
// I/O. Responses are not trusted: an invalid one is an error that names the problem.
#pragma once

#include "actors/model/lora_config.hpp"
#include "actors/protocol/engine_config.hpp"
#include "core/result.hpp"
#include "core/units.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace temper::actors {

/// A request.
struct ServerCall {
  std::string method = "POST";
  std::string target;
  std::string body;
  bool may_be_refused = false;  ///< A status other than 2xx changes nothing for what follows.
};

/// Limit for the body of a response about this many tokens, in bytes: each token comes with its
/// escaped text and log-probs.
constexpr std::uint64_t largest_answer(std::size_t tokens) {
  constexpr std::uint64_t kRest = std::uint64_t{1} << 20, kOfToken = 4096;
  constexpr std::uint64_t kMost = std::uint64_t{1} << 30;
  return std::min<std::uint64_t>(kMost, kRest + kOfToken * std::min<std::uint64_t>(tokens, kMost));
}

/// A response to generate or to continue.
struct GenerateCall {
  std::string id;                        ///< Unique for each call.
  std::span<const std::int32_t> tokens;  ///< Prompt, and the response so far.
  std::int64_t most = 1;                 ///< Most tokens to add.
  std::string salt;                      ///< Salt of the prefix cache; one per version.
  std::vector<std::int32_t> stops{};     ///< Additional end tokens for this call.
  bool greedy = false;                   ///< Greedy decoding.
};

/// Consecutive tokens that the server labels with one version.
struct LabeledRun {
  std::string label;
  std::size_t tokens = 0;
};

struct GenerateReply {
  enum class StopReason { End, Length, Aborted };
  std::vector<std::int32_t> tokens;
  std::vector<float> logprobs;
  StopReason ended = StopReason::End;
  /// Cover all tokens; empty if the server reports no versions.
  std::optional<std::vector<LabeledRun>> runs;
};

/// Kinds of device memory of a server.
enum class ServerMemory { KvCache, Weights };

/// The load of a server according to /metrics; figures that it does not report keep these defaults.
struct ServerLoad {
  double running = 0;
  double waiting = 0;
  double cache_used = 0;   ///< Used share of the KV cache, 0 to 1.
  double preemptions = 0;  ///< Number since its start.
};

/// Sampling parameters; the same for the whole run.
struct ServerSampling {
  double temperature = 1;
  double top_p = 1;
  std::vector<std::int32_t> end_tokens{1};  ///< Each of these ends a response, as its last token.
  std::int32_t vocabulary = 0;
  std::string model;                   ///< Name of the model on the server.
  std::optional<LoraConfig> adapters;  ///< Versions are adapters of it, of this shape.

  /// All end tokens, including `stops`.
  std::vector<std::int32_t> ends_with(const std::vector<std::int32_t>& stops) const {
    std::vector<std::int32_t> all = end_tokens;
    all.insert(all.end(), stops.begin(), stops.end());
    return all;
  }
  bool ends(std::int32_t token) const {
    return std::ranges::find(end_tokens, token) != end_tokens.end();
  }
};

class ServerApi {
 public:
  virtual ~ServerApi() = default;

  virtual void set_model(std::string name) { sampling_.model = std::move(name); }
  /// Later requests name this adapter, which load() has loaded, in place of the model.
  void use_adapter(std::string name) { adapter_ = std::move(name); }
  const ServerSampling& sampling() const { return sampling_; }

  /// `routes`: the paths that the server lists; empty if it lists none. Error Unsupported: a
  /// required route is missing; names the flag that enables it.
  virtual Status accept_routes(const std::set<std::string>& routes) = 0;
  /// Path of a GET request that succeeds once the server is ready.
  virtual std::string health() const { return "/health"; }
  /// The next probe request, for servers whose kind does not determine what they can do; empty if
  /// there is none. Each response is passed to learn() before the next probe.
  virtual std::optional<ServerCall> next_probe() const { return std::nullopt; }
  /// Error: the server cannot be used; names what it lacks.
  virtual Status learn(int /*status*/, std::string_view /*body*/) { return {}; }

  /// Error: the server can only score; names what it lacks.
  virtual Status can_generate() const { return {}; }
  /// True if the server stops at the end tokens of a call. Otherwise tokens after an end token must
  /// be discarded.
  virtual bool stops_at_tokens() const { return true; }
  /// Most tokens to request at once; limited for servers that cannot abort requests.
  virtual std::int64_t most_per_call() const { return std::numeric_limits<std::int64_t>::max(); }
  virtual ServerCall generate(const GenerateCall& call) const = 0;
  virtual Result<GenerateReply> read_generated(std::string_view body) const = 0;

  /// False if the server cannot score() while it generates.
  virtual bool scores_while_generating() const { return true; }
  /// False if score() covers only the last token.
  virtual bool scores_at_once() const { return true; }
  /// Requests the log-probs, at temperature 1, of all tokens after the first.
  virtual ServerCall score(std::span<const std::int32_t> tokens) const = 0;
  virtual Result<std::vector<float>> read_scores(std::string_view body,
                                                 std::span<const std::int32_t> tokens) const = 0;

  /// How the server gets new weights.
  enum class Loading { Routes, Restart, Never };
  virtual Loading loading() const { return Loading::Routes; }
  /// Aborts running requests, returning their tokens so far, and starts no new ones; empty if the
  /// server cannot pause.
  virtual std::optional<ServerCall> pause() const = 0;
  /// Aborts these requests, or all if `ids` is empty; they return their tokens so far.
  virtual std::vector<ServerCall> abort(std::span<const std::string> ids) const = 0;
  /// Requests, in order, that load the weights of a folder and set their label. If versions are
  /// adapters, they load an adapter of that name.
  virtual std::vector<ServerCall> load(const std::string& folder,
                                       const std::string& label) const = 0;
  /// Drops an adapter that no request uses; empty if the server has no adapters.
  virtual std::optional<ServerCall> unload(const std::string& /*label*/) const {
    return std::nullopt;
  }
  /// Error if a 2xx response to a load() request reports a failure.
  virtual Status check_loaded(std::string_view body) const = 0;
  /// Empty if the server cannot pause.
  virtual std::optional<ServerCall> resume() const = 0;
  /// Requests that release this device memory while no request is running; empty if it is released
  /// together with the other kind. Error: this kind of server cannot release memory.
  virtual Result<std::vector<ServerCall>> release(ServerMemory what) const = 0;
  /// Requests that allocate it again, weights first. The weights are undefined until a version is
  /// loaded.
  virtual std::vector<ServerCall> regain(ServerMemory what) const = 0;
  /// Requests that restore all memory of a server in an unknown state.
  virtual std::vector<ServerCall> wake() const = 0;
  /// Empty if the server does not report its weights.
  virtual std::optional<ServerCall> version() const = 0;
  virtual Result<std::string> read_version(std::string_view body) const = 0;
  virtual ServerLoad read_load(std::string_view metrics) const = 0;

 protected:
  explicit ServerApi(ServerSampling sampling) : sampling_(std::move(sampling)) {}
  /// Name of what requests are computed with.
  const std::string& model() const { return adapter_.empty() ? sampling_.model : adapter_; }

  ServerSampling sampling_;
  std::string adapter_;  ///< Empty until use_adapter().
};

/// Requires: is_server(config.kind).
std::unique_ptr<ServerApi> make_server_api(const EngineConfig& config,
                                           const ServerSampling& sampling);
std::unique_ptr<ServerApi> make_vllm_api(const ServerSampling& sampling);
std::unique_ptr<ServerApi> make_sglang_api(const ServerSampling& sampling);
std::unique_ptr<ServerApi> make_openai_api(const EngineConfig& config,
                                           const ServerSampling& sampling);
std::unique_ptr<ServerApi> make_llamacpp_api(const ServerSampling& sampling);

/// The sum of a metric over its labels in a Prometheus text; empty if the metric is missing.
std::optional<double> metric(std::string_view text, std::string_view name);

}  // namespace temper::actors
