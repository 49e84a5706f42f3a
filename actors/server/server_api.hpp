// What differs between inference servers: the routes, what is sent to them and what their answers
// mean. Nothing here talks to anyone. What a server says is checked as a stranger's: an answer that
// does not fit is an error that says how.
#pragma once

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

/// One exchange: what is sent.
struct ServerCall {
  std::string method = "POST";
  std::string target;
  std::string body;
};

/// Bytes that the body of an answer about so many tokens may have: each with its text, escaped, and
/// its log-probs.
constexpr std::uint64_t largest_answer(std::size_t tokens) {
  constexpr std::uint64_t kRest = std::uint64_t{1} << 20, kOfToken = 4096;
  constexpr std::uint64_t kMost = std::uint64_t{1} << 30;
  return std::min<std::uint64_t>(kMost, kRest + kOfToken * std::min<std::uint64_t>(tokens, kMost));
}

/// A response, or its rest, to be generated.
struct GenerateCall {
  std::string id;                        ///< New for each call.
  std::span<const std::int32_t> tokens;  ///< Prompt, and what there is of the response.
  std::int64_t most = 1;                 ///< Tokens to add at most.
  std::string salt;                      ///< Of the prefix cache: one per version.
  std::vector<std::int32_t> stops{};     ///< Tokens that end it beside those of every response.
  bool greedy = false;                   ///< The likeliest token each time.
};

/// Tokens in a row that the server says are of one version.
struct LabelledRun {
  std::string label;
  std::size_t tokens = 0;
};

struct GenerateReply {
  enum class Ended { End, Length, Aborted };
  std::vector<std::int32_t> tokens;
  std::vector<float> logprobs;
  Ended ended = Ended::End;
  /// Add up to the tokens; none: the server does not say.
  std::optional<std::vector<LabelledRun>> runs;
};

/// What a server holds on its cards.
enum class ServerMemory { KvCache, Weights };

/// What a server's /metrics says of its load; a figure it does not give is as here.
struct ServerLoad {
  double running = 0;
  double waiting = 0;
  double cache_used = 0;   ///< Share of its key-value cache, 0 to 1.
  double preemptions = 0;  ///< Since its start.
};

/// How responses are sampled: the same for all of a run.
struct ServerSampling {
  double temperature = 1;
  double top_p = 1;
  std::vector<std::int32_t> end_tokens{1};  ///< Each of them ends a response, as its last token.
  std::int32_t vocabulary = 0;
  std::string model;  ///< As the server names it.

  /// Those that end a response, and these.
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
  const ServerSampling& sampling() const { return sampling_; }

  /// `routes`: the paths that the server lists (empty: it lists none). Error: one that is needed is
  /// missing; says which flag brings it.
  virtual Status accept_routes(const std::set<std::string>& routes) = 0;
  /// GET that is answered with 2xx once the server can work.
  virtual std::string health() const { return "/health"; }
  /// What is asked of it before anything else, where its kind says too little of what it can do;
  /// none: nothing more. Each answer is for learn() before the next is asked.
  virtual std::optional<ServerCall> next_probe() const { return std::nullopt; }
  /// Error: it cannot be this engine's; says what it lacks.
  virtual Status learn(int /*status*/, std::string_view /*body*/) { return {}; }

  /// Error: it can score only; says what it lacks.
  virtual Status can_generate() const { return {}; }
  /// Whether it stops at the tokens that a call names. If not, what follows one is no token of the
  /// response.
  virtual bool stops_at_tokens() const { return true; }
  /// Tokens to ask for at once: less than all of a server that cannot end what runs.
  virtual std::int64_t most_per_call() const { return std::numeric_limits<std::int64_t>::max(); }
  virtual ServerCall generate(const GenerateCall& call) const = 0;
  virtual Result<GenerateReply> read_generated(std::string_view body) const = 0;

  /// False: a score() is of the last token alone.
  virtual bool scores_at_once() const { return true; }
  /// Log-probs, at temperature 1, of all tokens but the first.
  virtual ServerCall score(std::span<const std::int32_t> tokens) const = 0;
  virtual Result<std::vector<float>> read_scores(std::string_view body,
                                                 std::span<const std::int32_t> tokens) const = 0;

  /// How the weights of a version come into it.
  enum class Loading { Routes, Restart, Never };
  virtual Loading loading() const { return Loading::Routes; }
  /// Ends what runs, with what it has, and begins nothing more; none: it cannot.
  virtual std::optional<ServerCall> pause() const = 0;
  /// Ends these, or with no id all, with what they have.
  virtual std::vector<ServerCall> abort(std::span<const std::string> ids) const = 0;
  /// What makes the weights of a folder current and names them so, in order.
  virtual std::vector<ServerCall> load(const std::string& folder,
                                       const std::string& label) const = 0;
  /// What an answer with status 2xx to one of load() says against it.
  virtual Status check_loaded(std::string_view body) const = 0;
  /// None: it cannot pause.
  virtual std::optional<ServerCall> resume() const = 0;
  /// What gives this memory of its cards back, of a server on which nothing runs; empty: it goes
  /// with the other one. Error: the kind of server cannot.
  virtual Result<std::vector<ServerCall>> release(ServerMemory what) const = 0;
  /// What takes it again, weights first. The weights are then no version's until one is loaded.
  virtual std::vector<ServerCall> regain(ServerMemory what) const = 0;
  /// What makes a server whole again of which nobody knows how much it had given back.
  virtual std::vector<ServerCall> wake() const = 0;
  /// None: it does not name its weights.
  virtual std::optional<ServerCall> version() const = 0;
  virtual Result<std::string> read_version(std::string_view body) const = 0;
  virtual ServerLoad read_load(std::string_view metrics) const = 0;

 protected:
  explicit ServerApi(ServerSampling sampling) : sampling_(std::move(sampling)) {}
  ServerSampling sampling_;
};

/// Requires: is_server(config.kind).
std::unique_ptr<ServerApi> make_server_api(const EngineConfig& config,
                                           const ServerSampling& sampling);
std::unique_ptr<ServerApi> make_vllm_api(const ServerSampling& sampling);
std::unique_ptr<ServerApi> make_sglang_api(const ServerSampling& sampling);
std::unique_ptr<ServerApi> make_openai_api(const EngineConfig& config,
                                           const ServerSampling& sampling);
std::unique_ptr<ServerApi> make_llamacpp_api(const ServerSampling& sampling);

/// The sum of a metric's samples over its labels in a Prometheus text; none: it is not there.
std::optional<double> metric(std::string_view text, std::string_view name);

}  // namespace temper::actors
