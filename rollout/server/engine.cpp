#include "rollout/server/engine.hpp"

#include "core/random.hpp"
#include "rollout/server/internal/http_engine.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <unordered_set>

namespace temper::rollout {
namespace internal {
namespace {

constexpr Duration kLoadEvery = std::chrono::seconds(1);
/// Delay before a response whose request failed is sent again; grows with each failure.
constexpr Duration kPause = std::chrono::milliseconds(50);

}  // namespace

using actors::FinishReason;
using actors::GenerateReply;
using actors::HttpAnswer;

HttpEngine::HttpEngine(std::unique_ptr<actors::Server> server,
                       const ServerEngineOptions& options,
                       actors::ServerVersion first)
    : options_(options),
      server_(std::move(server)),
      window_(std::min(options.first_window, options.concurrency), options.concurrency),
      first_(std::move(first)) {
  Random random(options.seed, server_->options().name + std::to_string(::getpid()));
  prefix_ = fmt::format("{:016x}", random.next());
}

std::size_t HttpEngine::limit_of(const GenerationRequest& request) const {
  const auto room = static_cast<std::size_t>(server_->options().model.shape.context.count());
  const auto wanted = static_cast<std::size_t>(options_.sampling.max_new_tokens.count());
  const std::size_t whole = std::min(wanted, room - std::min(room, request.prompt.size()));
  if (!request.most)
    return whole;
  return std::min(whole, request.prefix.size() + static_cast<std::size_t>(request.most->count()));
}

void HttpEngine::add(GenerationRequest request) {
  ServerResponse response;
  response.limit = limit_of(request);
  response.out.id = request.id;
  const bool possible = !request.prompt.empty() && response.limit > 0;
  const bool full = request.prefix.size() >= response.limit;
  response.request = std::move(request);
  if (possible && !full)
    return responses_.add(std::move(response));
  response.out.finish = possible ? FinishReason::Length : FinishReason::Failed;
  if (!possible)
    response.out.failure = "its prompt is empty, or leaves no space in model.context";
  settled_.push_back(std::move(response.out));
}

Result<StepResult> HttpEngine::step() {
  StepResult result;
  if (state_ != State::Working) {
    TEMPER_TRY_STATUS(probe());
  } else if (!responses_.empty()) {
    if (!current_)
      return Error{ErrorCode::Unavailable, "rollout engine: no weights to generate with"};
    dispatch();
    may_compare_ = true;
    collect(kAnswerPatience);
    may_compare_ = false;
    read_load();
    result.kind = StepKind::Decode;
  }
  result.finished = std::exchange(settled_, {});
  for (const Generation& g : result.finished)
    result.tokens += Tokens(static_cast<std::int64_t>(g.tokens.size()));
  return result;
}

void HttpEngine::dispatch() {
  if (now() < send_again_)
    return;
  while (responses_.under_way() < window_.size()) {
    ServerResponse* const response = responses_.next();
    if (response == nullptr)
      return;
    send(*response);
  }
}

void HttpEngine::send(ServerResponse& response) {
  std::string id = fmt::format("{}-{}", prefix_, ++calls_);
  const std::vector<std::int32_t> tokens = response.tokens();
  const std::int64_t most = std::min(static_cast<std::int64_t>(response.limit - response.made()),
                                     server_->api().most_per_call());
  actors::ServerCall call = server_->api().generate(
      {id, tokens, most, current_->label, response.request.stops, response.request.greedy});
  const auto ticket = server_->data().send(
      {std::move(call.method),
       std::move(call.target),
       std::move(call.body),
       options_.request_deadline,
       actors::largest_answer(tokens.size() + static_cast<std::size_t>(most))});
  responses_.sent(response, std::move(id), ticket);
}

void HttpEngine::collect(Duration patience) {
  // One label request for all answers that do not have their version.
  std::optional<bool> label_known;
  for (auto& [ticket, answer] : server_->data().take(patience)) {
    ServerResponse* const response = responses_.answered(ticket);
    if (response == nullptr)
      continue;
    const bool says = server_->api().version().has_value() &&
                      answer.body.find("weight_version") != std::string::npos;
    if (answer.good() && !says && !label_known)
      label_known = label_is_ours();
    settle(*response, std::move(answer), label_known.value_or(false));
  }
}

bool HttpEngine::label_is_ours() {
  const auto label = server_->label();
  if (label && current_ && *label == current_->label)
    return true;
  suspect(label ? "its label is \"" + *label + "\"" : label.error().context);
  return false;
}

void HttpEngine::settle(ServerResponse& response, HttpAnswer answer, bool label_known) {
  constexpr int kBadRequest = 400, kUnprocessable = 422;
  const ResponseId id = response.request.id;
  if (!answer.good()) {
    const std::string why =
        answer.status == 0
            ? answer.failure
            : fmt::format("status {}: {}", answer.status, answer.body.substr(0, 200));
    if (answer.status == kBadRequest || answer.status == kUnprocessable) {
      server_->log().error("response refused", {{"response", id}, {"why", why}});
      return finish(id, FinishReason::Failed, why);
    }
    if (answer.status == 0)
      suspect(why);
    return again(response, why);
  }
  auto reply = server_->api().read_generated(answer.body);
  if (!reply)
    return again(response, reply.error().context);
  if (!server_->api().stops_at_tokens())
    cut_at_end(response, *reply);
  if (const Status fits = accept(response, *reply, label_known); !fits)
    return again(response, fits.error().context);
  response.failures = 0;
  const GenerateReply::StopReason ended = reply->ended;
  append(response, *std::move(reply));
  if (may_compare_ && server_->api().scores_while_generating() &&
      ++compared_ % options_.compare_every == 0 && !stands_comparison(response))
    return;
  const auto& made = response.out.tokens;
  if (!made.empty() && ends(response, made.back()))
    return finish(id, FinishReason::End);
  if (response.made() >= response.limit)
    return finish(id, FinishReason::Length);
  if (ended == GenerateReply::StopReason::End)
    return again(response, "it stopped before an end token");
  responses_.requeue(response);  // Interrupted, by this engine or another client: it continues.
}

bool HttpEngine::ends(const ServerResponse& response, std::int32_t token) const {
  return server_->api().sampling().ends(token) ||
         std::ranges::find(response.request.stops, token) != response.request.stops.end();
}

/// The response ends at an end token, wherever the server ended it.
void HttpEngine::cut_at_end(const ServerResponse& response, GenerateReply& reply) const {
  const auto end =
      std::ranges::find_if(reply.tokens, [&](std::int32_t token) { return ends(response, token); });
  if (end == reply.tokens.end() || reply.logprobs.size() != reply.tokens.size())
    return;
  const auto kept = static_cast<std::size_t>(end - reply.tokens.begin()) + 1;
  reply.tokens.resize(kept);
  reply.logprobs.resize(kept);
  reply.ended = GenerateReply::StopReason::End;
}

/// Error: the reply is impossible. Its tokens are then discarded.
Status HttpEngine::accept(const ServerResponse& response,
                          const GenerateReply& reply,
                          bool label_known) {
  if (reply.tokens.size() != reply.logprobs.size()) {
    return corrupt(
        fmt::format("{} log-probs for {} tokens", reply.logprobs.size(), reply.tokens.size()));
  }
  if (reply.tokens.size() > response.limit - response.made())
    return corrupt("more tokens than requested");
  const auto first_end =
      std::ranges::find_if(reply.tokens, [&](std::int32_t token) { return ends(response, token); });
  if (first_end != reply.tokens.end() && first_end + 1 != reply.tokens.end())
    return corrupt("tokens after the end token");
  if (reply.ended != GenerateReply::StopReason::Aborted && reply.tokens.empty())
    return corrupt("no token, though the response was not finished");
  bool certain = label_known;
  if (reply.runs) {
    certain = std::ranges::all_of(*reply.runs,
                                  [&](const auto& run) { return run.label == current_->label; });
    if (!certain)
      suspect("it labels tokens \"" + reply.runs->front().label + "\"");
  }
  if (certain)
    return {};
  waste_.uncertain_tokens += reply.tokens.size();
  return corrupt("the version of its tokens is not certain");
}

void HttpEngine::append(ServerResponse& response, GenerateReply reply) {
  if (reply.tokens.empty())
    return;
  Generation& out = response.out;
  out.tokens.insert(out.tokens.end(), reply.tokens.begin(), reply.tokens.end());
  out.logprobs.insert(out.logprobs.end(), reply.logprobs.begin(), reply.logprobs.end());
  if (out.segments.empty() || out.segments.back().version != version_)
    out.segments.push_back({version_, Tokens(0)});
  out.segments.back().tokens += Tokens(static_cast<std::int64_t>(reply.tokens.size()));
}

/// Retries a response whose attempt kept no token.
void HttpEngine::again(ServerResponse& response, std::string_view why) {
  ++waste_.sampled_again;
  server_->log().warning(
      "sampled again",
      {{"response", response.request.id}, {"why", why}, {"so far", waste_.sampled_again}});
  // While the server is away, failures of requests are not counted against their responses.
  if (state_ != State::Away && ++response.failures >= options_.attempts)
    return finish(response.request.id, FinishReason::Failed, why);
  responses_.requeue(response);
  send_again_ = now() + kPause * response.failures;
}

void HttpEngine::finish(ResponseId id, FinishReason finish, std::string_view failure) {
  auto response = responses_.take(id);
  response->out.failure = failure;
  response->out.finish = finish;
  settled_.push_back(std::move(response->out));
}

/// Compares the log-probs of its tokens with those that the server scores now. False: it was
/// dropped.
bool HttpEngine::stands_comparison(ServerResponse& response) {
  const std::vector<std::int32_t> tokens = response.tokens();
  const auto& context = server_->options().model.shape.context;
  if (response.out.segments.size() != 1 ||
      Tokens(static_cast<std::int64_t>(tokens.size())) >= context)
    return true;
  const auto distance = actors::sampled_distance(*server_, tokens, response.out.logprobs);
  if (!distance) {
    suspect(distance.error().context);
    return true;
  }
  if (distance->value_or(0) <= server_->options().config.tolerance)
    return true;
  suspect(fmt::format("sampled log-probs differ by {:.3g} from those it scores", **distance));
  waste_.uncertain_tokens += response.out.tokens.size();
  response.out.tokens.clear();
  response.out.logprobs.clear();
  response.out.segments.clear();
  state_ = State::Away;  // Its label may be right: the weights are loaded again.
  again(response, "its log-probs differ from those with which it was sampled");
  return false;
}

std::vector<Generation> HttpEngine::withdraw(std::span<const ResponseId> ids) {
  std::vector<ResponseId> here;
  for (const ResponseId id : ids) {
    if (responses_.find(id) != nullptr)
      here.push_back(id);
  }
  return remove_responses(here);
}

/// Returns the responses with their tokens: the server aborts requests in flight, and reports the
/// tokens so far.
std::vector<Generation> HttpEngine::remove_responses(const std::vector<ResponseId>& ids) {
  std::vector<Generation> out = std::exchange(settled_, {});
  const std::unordered_set<ResponseId> leaving(ids.begin(), ids.end());
  const auto still_under_way = [&] {
    const auto under_way = responses_.ids_under_way();
    return std::ranges::any_of(under_way, [&](ResponseId id) { return leaving.contains(id); });
  };
  if (state_ == State::Working && still_under_way()) {
    abort(ids);
    const Time deadline = now() + options_.drain;
    while (state_ == State::Working && still_under_way() && now() < deadline)
      collect(kAnswerPatience);
  }
  for (const ResponseId id : ids) {
    auto response = responses_.take(id);
    if (!response)
      continue;  // It finished, and is in settled_.
    response->out.finish = FinishReason::Interrupted;
    out.push_back(std::move(response->out));
  }
  for (Generation& ended : std::exchange(settled_, {}))
    out.push_back(std::move(ended));
  return out;
}

void HttpEngine::cancel(std::span<const ResponseId> ids) {
  abort({ids.begin(), ids.end()});
  const std::unordered_set<ResponseId> gone(ids.begin(), ids.end());
  std::erase_if(settled_, [&](const Generation& g) { return gone.contains(g.id); });
  for (const ResponseId id : ids)
    responses_.take(id);
}

/// Aborts requests in flight; responses without one are skipped. Does not wait, because nothing
/// depends on it.
void HttpEngine::abort(const std::vector<ResponseId>& ids) {
  std::vector<std::string> calls;
  for (const ResponseId id : ids) {
    const ServerResponse* const response = responses_.find(id);
    if (response != nullptr && response->call)
      calls.push_back(*response->call);
  }
  if (calls.empty())
    return;
  for (const actors::ServerCall& call : server_->api().abort(calls)) {
    if (const auto body = server_->ask(call, std::chrono::seconds(5)); !body)
      server_->log().warning("requests not aborted", {{"why", body.error().context}});
  }
}

void HttpEngine::read_load() {
  if (now() < next_load_)
    return;
  next_load_ = now() + kLoadEvery;
  const auto body = server_->ask({"GET", "/metrics", {}}, std::chrono::seconds(1));
  if (body)
    window_.adjust(server_->api().read_load(*body), responses_.under_way());
  else if (body.error().code != ErrorCode::Unavailable)
    window_.adjust({}, responses_.under_way());  // Load unknown: use the configured limit.
}

}  // namespace internal

Result<std::unique_ptr<ServerEngine>> make_server_engine(std::unique_ptr<actors::Server> server,
                                                         const ServerEngineOptions& options,
                                                         std::span<const std::byte> first) {
  actors::ServerVersion base;
  if (!server->options().config.start.empty()) {
    TEMPER_TRY(base, server->write_base(first));
  }
  const bool takes_turns = server->options().takes_turns;
  auto engine = std::make_unique<internal::HttpEngine>(std::move(server), options, std::move(base));
  TEMPER_TRY_STATUS(engine->meet());
  if (takes_turns) {  // The trainer has the cards first.
    TEMPER_TRY_STATUS(engine->free_kv());
    TEMPER_TRY_STATUS(engine->free_weights());
  }
  return std::unique_ptr<ServerEngine>(std::move(engine));
}

}  // namespace temper::rollout
