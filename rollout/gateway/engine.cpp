#include "rollout/gateway/engine.hpp"

#include "actors/border/values.hpp"
#include "core/json_document.hpp"
#include "core/secret.hpp"
#include "rollout/gateway/gateway_api.hpp"
#include "rollout/gateway/http_gateway.hpp"
#include "rollout/gateway/internal/agent_process.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>

namespace temper::rollout {
namespace {

using actors::FinishReason;
using nlohmann::json;

/// Longest wait for requests and lines while the engine is idle.
constexpr Duration kPatience = std::chrono::milliseconds(2);
constexpr Duration kFirstPause = std::chrono::milliseconds(100);
constexpr Duration kLongestPause = std::chrono::seconds(10);
/// Number of finished episodes between two log lines with statistics.
constexpr std::size_t kTellEvery = 256;
constexpr int kBadRequest = 400, kNotFound = 404, kConflict = 409, kGone = 410, kTooMany = 429;

/// A process of the agent, and the delay before its next restart.
struct Agent {
  internal::AgentProcess process;
  std::size_t episodes = 0;
  Duration pause = kFirstPause;
  Time not_before{};
};

struct Episode {
  ResponseId id;
  EpisodeRow row;
  std::string session{};
  bool greedy = false;
  std::optional<std::size_t> agent{};  ///< None: not assigned to a process yet.
  Time deadline{};
  std::size_t turns = 0;
  // Of the turn that is being sampled.
  std::optional<std::uint64_t> ticket{};
  GatewayRoute route = GatewayRoute::Completions;
  std::vector<std::int32_t> stops{};
};

class GatewayEngine final : public AgentEngine {
 public:
  GatewayEngine(std::unique_ptr<Engine> engine,
                const AgentEngineOptions& options,
                actors::Tokenizer tokenizer,
                std::shared_ptr<const Clock> clock,
                Log log)
      : options_(options),
        tokenizer_(std::move(tokenizer)),
        clock_(std::move(clock)),
        log_(std::move(log)),
        engine_(std::move(engine)) {}

  Status begin() {
    // In JSON, a token takes at most this many bytes: its number, or its text with each character
    // escaped.
    constexpr std::uint64_t kOfToken = 32, kOfTheRest = std::uint64_t{1} << 20;
    GatewayLimits limits;
    limits.body = std::min(
        limits.body, kOfTheRest + kOfToken * static_cast<std::uint64_t>(options_.context.count()));
    TEMPER_TRY(gateway_, HttpGateway::listen(limits));
    for (std::int32_t i = 0; i < options_.agent.processes; ++i) {
      agents_.push_back(Agent{internal::AgentProcess(options_.agent, log_)});
      TEMPER_TRY_STATUS(agents_.back().process.start());
    }
    return {};
  }

  void add(GenerationRequest request) override;
  Result<StepResult> step() override;
  std::size_t load() const override { return episodes_.size() + settled_.size(); }
  std::vector<Generation> interrupt() override;
  std::vector<Generation> withdraw(std::span<const ResponseId> ids) override;
  void cancel(std::span<const ResponseId> ids) override;

  Status stage(PolicyVersion version, std::span<const std::byte> weights) override {
    return engine_->stage(version, weights);
  }
  Status commit(PolicyVersion version) override { return engine_->commit(version); }
  PolicyVersion version() const override { return engine_->version(); }
  Status free_kv() override { return engine_->free_kv(); }
  Status allocate_kv() override { return engine_->allocate_kv(); }
  Status free_weights() override { return engine_->free_weights(); }
  EngineMemory memory() const override { return engine_->memory(); }
  const AgentFigures& figures() const override { return figures_; }

 private:
  void assign_episodes();
  void answer_calls(Duration patience);
  void answer(const GatewayCall& call);
  Status ask(Episode& episode, GatewayRoute route, const GatewayCall& call);
  /// Largest number of tokens of prompt and row.
  std::size_t longest(const Episode& episode) const {
    const auto row = static_cast<std::size_t>(options_.sampling.max_new_tokens.count());
    return std::min(static_cast<std::size_t>(options_.context.count()),
                    episode.row.prompt().size() + row);
  }
  void settle(const Generation& turn);
  void read_agents();
  void read_line(std::size_t agent, const std::string& line);
  void end(Episode& episode, const json& said);
  void fail(ResponseId id, std::string_view why);
  void forget(ResponseId id, std::string_view why);
  void refuse(std::uint64_t ticket, int status, std::string_view why) {
    gateway_->answer(ticket, status, write_error(why));
  }
  void check_deadlines();

  const AgentEngineOptions options_;
  const actors::Tokenizer tokenizer_;
  const std::shared_ptr<const Clock> clock_;
  const Log log_;
  const std::unique_ptr<Engine> engine_;
  std::unique_ptr<HttpGateway> gateway_;
  std::vector<Agent> agents_;
  std::map<ResponseId, Episode> episodes_;
  std::unordered_map<std::string, ResponseId> sessions_;
  std::vector<Generation> settled_;  ///< Finished, not reported yet.
  AgentFigures figures_;
};

void GatewayEngine::add(GenerationRequest request) {
  if (!request.prefix.empty()) {
    // The prefix comes from an attempt without an agent, so the state that led to it is unknown.
    Generation failed;
    failed.id = request.id;
    failed.finish = FinishReason::Failed;
    failed.failure = "an agent cannot continue a response that started without an agent";
    settled_.push_back(std::move(failed));
    return;
  }
  const ResponseId id = request.id;
  std::string text = tokenizer_.decode(request.prompt);
  Episode episode{id, EpisodeRow(std::move(request.prompt), std::move(text))};
  episode.greedy = request.greedy;
  episode.session = make_secret();  // The only protection against other users of the machine.
  sessions_[episode.session] = id;
  gateway_->admit(episode.session);
  forget(id, "the episode was restarted");
  episodes_.emplace(id, std::move(episode));
}

/// Assigns unassigned episodes, each to the process that has fewest.
void GatewayEngine::assign_episodes() {
  for (auto& [id, episode] : episodes_) {
    if (episode.agent)
      continue;
    Agent* best = nullptr;
    for (Agent& agent : agents_) {
      if (agent.process.is_there() && (best == nullptr || agent.episodes < best->episodes))
        best = &agent;
    }
    if (best == nullptr)
      return;
    const json line{{"episode", episode.session},
                    {"base_url", gateway_->address() + "/sessions/" + episode.session},
                    {"prompt", *episode.row.text()},
                    {"prompt_token_ids", episode.row.prompt()}};
    best->process.say(line.dump(-1, ' ', false, json::error_handler_t::replace));
    ++best->episodes;
    episode.agent = static_cast<std::size_t>(best - agents_.data());
    episode.deadline = clock_->now() + options_.agent.deadline;
  }
}

Result<StepResult> GatewayEngine::step() {
  assign_episodes();
  read_agents();
  answer_calls(engine_->load() > 0 || !settled_.empty() ? Duration(0) : kPatience);
  check_deadlines();
  StepResult result;
  if (!episodes_.empty())
    result.kind = StepKind::Tools;
  if (engine_->load() > 0) {
    TEMPER_TRY(result, engine_->step());
    for (const Generation& turn : std::exchange(result.finished, {}))
      settle(turn);
  }
  result.finished = std::exchange(settled_, {});
  return result;
}

// --- Requests

void GatewayEngine::answer_calls(Duration patience) {
  for (const GatewayCall& call : gateway_->take(patience))
    answer(call);
}

void GatewayEngine::answer(const GatewayCall& call) {
  const auto target = parse_target(call.target);
  if (!target)
    return refuse(call.ticket, kNotFound, target.error().context);
  const auto session = sessions_.find(target->session);
  if (session == sessions_.end())
    return refuse(call.ticket, kGone, kNoSession);
  if (target->route == GatewayRoute::Models)
    return gateway_->answer(call.ticket, 200, write_models());
  if (call.method != "POST")
    return refuse(call.ticket, kNotFound, "expected POST on this route");
  Episode& episode = episodes_.at(session->second);
  if (episode.ticket)
    return refuse(call.ticket, kConflict, "another request of this session is in progress");
  if (std::cmp_greater_equal(episode.turns, options_.agent.turns)) {
    return refuse(
        call.ticket, kTooMany, "the episode has used all its turns (rollout.agent.turns)");
  }
  if (const Status asked = ask(episode, target->route, call); !asked) {
    const bool full = asked.error().code == ErrorCode::OutOfMemory;
    refuse(call.ticket, full ? kTooMany : kBadRequest, asked.error().context);
  }
}

Status GatewayEngine::ask(Episode& episode, GatewayRoute route, const GatewayCall& call) {
  TEMPER_TRY(TurnRequest turn, parse_turn(route, call.body, options_.sampling, tokenizer_));
  std::vector<std::int32_t> context;
  std::optional<std::string> text;
  if (!turn.tokens)
    text = turn.text;
  if (turn.tokens) {
    context = *std::move(turn.tokens);
  } else if (!episode.row.text()) {
    return invalid_input("this session uses token ids; text cannot be mixed with them");
  } else if (turn.text.starts_with(*episode.row.text())) {
    // The recorded tokens, even if the text would be tokenized differently.
    TEMPER_TRY(const auto more, tokenizer_.encode(turn.text.substr(episode.row.text()->size())));
    context = episode.row.context();
    context.insert(context.end(), more.begin(), more.end());
  } else {
    TEMPER_TRY(context, tokenizer_.encode(turn.text));
  }
  if (context.size() >= longest(episode)) {
    return Error{
        ErrorCode::OutOfMemory,
        "no space for another token: the row has reached the limit of sampling.max_new_tokens and "
        "model.context, tool output included"};
  }
  TEMPER_TRY_STATUS(episode.row.move_to(context, engine_->version()));
  episode.row.show(text);
  ++episode.turns;
  episode.ticket = call.ticket;
  episode.route = route;
  episode.stops = turn.stops;
  GenerationRequest request{episode.id, episode.row.prompt(), episode.row.tokens()};
  request.most = turn.most;
  request.stops = std::move(turn.stops);
  request.greedy = episode.greedy;
  engine_->add(std::move(request));
  return {};
}

/// Handles a turn that was sampled, or failed.
void GatewayEngine::settle(const Generation& turn) {
  const auto found = episodes_.find(turn.id);
  if (found == episodes_.end() || !found->second.ticket)
    return;
  Episode& episode = found->second;
  if (turn.finish == FinishReason::Failed || turn.finish == FinishReason::Interrupted)
    return fail(turn.id, "sampling of a turn failed");
  const std::size_t context = episode.row.prompt().size() + episode.row.tokens().size();
  const std::string text = text_of_turn(turn, episode.stops, tokenizer_);
  episode.row.add(turn);
  if (episode.row.text())
    episode.row.show(*episode.row.text() + text);
  gateway_->answer(
      *std::exchange(episode.ticket, std::nullopt),
      200,
      write_turn(episode.route,
                 {fmt::format("{}-{}", episode.session, episode.turns), context, text, &turn}));
}

// --- Agents

void GatewayEngine::read_agents() {
  const Time now = clock_->now();
  for (std::size_t i = 0; i < agents_.size(); ++i) {
    Agent& agent = agents_[i];
    for (const std::string& line : agent.process.advance())
      read_line(i, line);
    if (const auto how = agent.process.ended()) {
      log_.warning("agent ended", {{"how", *how}, {"episodes", agent.episodes}});
      std::vector<ResponseId> lost;
      for (const auto& [id, episode] : episodes_) {
        if (episode.agent == i)
          lost.push_back(id);
      }
      for (const ResponseId id : lost)
        fail(id, "its agent exited: " + *how);
      agent.episodes = 0;
      agent.not_before = now + agent.pause;
      agent.pause = std::min(agent.pause * 2, kLongestPause);
    }
    if (!agent.process.is_there() && now >= agent.not_before) {
      if (const Status started = agent.process.start(); !started) {
        log_.error("agent not started", {{"why", started.error().context}});
        agent.not_before = now + agent.pause;
      }
    }
  }
}

/// {"episode": ..., "reward": ..., "counts": {...}} or {"episode": ..., "error": "..."}
void GatewayEngine::read_line(std::size_t agent, const std::string& line) {
  const json said = parse_json(line);
  const json session = said.is_object() ? said.value("episode", json()) : json();
  if (!session.is_string()) {
    agents_[agent].process.end("it wrote a line to stdout that names no episode: " +
                               line.substr(0, 80));
    return;
  }
  const auto found = sessions_.find(session.get<std::string>());
  if (found == sessions_.end())
    return;  // Withdrawn, or its deadline passed.
  Episode& episode = episodes_.at(found->second);
  agents_[agent].pause = kFirstPause;
  if (said.contains("error"))
    return fail(episode.id, "the agent reported: " + actors::bounded_text(said["error"].dump()));
  const json reward = said.value("reward", json(0.0));
  if (!reward.is_number())
    return fail(episode.id, "its reward is not a number: " + actors::bounded_text(reward.dump()));
  if (const Status possible = actors::check_reward(reward.get<double>()); !possible)
    return fail(episode.id, possible.error().context);
  if (episode.row.counts().sampled == 0)
    return fail(episode.id, "it ended without a turn");
  end(episode, said);
}

void GatewayEngine::end(Episode& episode, const json& said) {
  const ResponseId id = episode.id;
  const double reward = said.value("reward", json(0.0)).get<double>();
  figures_.add(episode.row.counts(), reward);
  const json own = said.value("counts", json::object());
  if (own.is_object()) {
    for (const auto& [name, value] : own.items()) {
      if (value.is_number())
        figures_.counts[name] += value.get<double>();
    }
  }
  const bool full = episode.row.context().size() >= longest(episode);
  settled_.push_back(
      std::move(episode.row).finish(id, full ? FinishReason::Length : FinishReason::End, reward));
  forget(id, "the episode has ended");
  if (figures_.episodes % kTellEvery == 0)
    figures_.tell(log_);
}

void GatewayEngine::fail(ResponseId id, std::string_view why) {
  ++figures_.failed;
  log_.warning("episode failed", {{"response", id}, {"why", why}});
  forget(id, why);
  Generation failed;
  failed.id = id;
  failed.finish = FinishReason::Failed;
  failed.failure = why;
  settled_.push_back(std::move(failed));
}

/// Removes the episode: pending requests are refused, and the engine drops its turn.
void GatewayEngine::forget(ResponseId id, std::string_view why) {
  const auto found = episodes_.find(id);
  if (found == episodes_.end())
    return;
  Episode& episode = found->second;
  if (episode.ticket) {
    refuse(*episode.ticket, kGone, why);
    engine_->cancel(std::array{id});
  }
  if (episode.agent)
    --agents_[*episode.agent].episodes;
  sessions_.erase(episode.session);
  gateway_->dismiss(episode.session);
  episodes_.erase(found);
}

void GatewayEngine::check_deadlines() {
  const Time now = clock_->now();
  std::vector<ResponseId> late;
  for (const auto& [id, episode] : episodes_) {
    if (episode.agent && now >= episode.deadline)
      late.push_back(id);
  }
  for (const ResponseId id : late) {
    fail(id,
         fmt::format("did not finish within {} (rollout.agent.deadline)",
                     to_text(options_.agent.deadline)));
  }
}

// --- Withdrawal and cancellation

std::vector<Generation> GatewayEngine::interrupt() {
  std::vector<ResponseId> ids;
  for (const auto& [id, episode] : episodes_)
    ids.push_back(id);
  return withdraw(ids);
}

std::vector<Generation> GatewayEngine::withdraw(std::span<const ResponseId> ids) {
  std::vector<Generation> out = std::exchange(settled_, {});
  for (const ResponseId id : ids) {
    if (!episodes_.contains(id))
      continue;
    ++figures_.begun_anew;
    forget(id, "the episode is restarted elsewhere");
    Generation back;
    back.id = id;
    back.finish = FinishReason::Interrupted;
    out.push_back(std::move(back));
  }
  return out;
}

void GatewayEngine::cancel(std::span<const ResponseId> ids) {
  for (const ResponseId id : ids) {
    forget(id, "the episode was canceled");
    std::erase_if(settled_, [id](const Generation& g) { return g.id == id; });
  }
}

}  // namespace

Result<std::unique_ptr<AgentEngine>> make_agent_engine(std::unique_ptr<Engine> engine,
                                                       const AgentEngineOptions& options,
                                                       actors::Tokenizer tokenizer,
                                                       std::shared_ptr<const Clock> clock,
                                                       Log log) {
  auto made = std::make_unique<GatewayEngine>(
      std::move(engine), options, std::move(tokenizer), std::move(clock), std::move(log));
  TEMPER_TRY_STATUS(made->begin());
  return std::unique_ptr<AgentEngine>(std::move(made));
}

}  // namespace temper::rollout
