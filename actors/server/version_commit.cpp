#include "actors/server/version_commit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

namespace temper::actors {
namespace {

constexpr int kCommitAttempts = 3;
constexpr int kResumes = 5;
constexpr Duration kResumeDeadline = std::chrono::seconds(10);
constexpr Duration kBetween = std::chrono::milliseconds(100);

/// How often a request that a busy server refuses is repeated.
constexpr int kAsks = 20;

/// Measures the time from its construction to the end of its scope.
class Phase {
 public:
  Phase(const Clock& clock, Duration& into) : clock_(clock), into_(into), begin_(clock.now()) {}
  ~Phase() { into_ += clock_.now() - begin_; }
  Phase(const Phase&) = delete;
  Phase& operator=(const Phase&) = delete;

 private:
  const Clock& clock_;
  Duration& into_;
  const Time begin_;
};

/// After a failed attempt the server is always restarted, whatever weights it was started with.
Status restart(Server& server, const ServerVersion& next, int attempt) {
  if (attempt > 1 || !server.runs(next)) {
    TEMPER_TRY_STATUS(server.start_with(next));
    TEMPER_TRY_STATUS(warm_up(server));
  }
  return server.trust(next);
}

Status load(Server& server, const ServerVersion& next, int attempt) {
  if (server.api().loading() == ServerApi::Loading::Restart)
    return restart(server, next, attempt);
  for (const ServerCall& call : server.api().load(next.folder.string(), next.label)) {
    const bool flush = call.target.starts_with("/flush_cache");
    for (int i = 1;; ++i) {
      const auto body = server.ask(call);
      if (call.may_be_refused && (body || body.error().code != ErrorCode::Unavailable))
        break;
      if (body) {
        TEMPER_TRY_STATUS(server.api().check_loaded(*body));
        break;
      }
      // A flush is refused only while requests run; other refusals are permanent.
      if (!flush || i == kAsks || body.error().code == ErrorCode::Unavailable)
        return body.error();
      std::this_thread::sleep_for(kBetween);
    }
  }
  server.use(next);
  return server.api().version() ? Status() : server.trust(next);
}

/// A pause outlives the process that requested it, so resuming is retried more often than other
/// requests.
Status resume(Server& server) {
  const auto call = server.api().resume();
  if (!call)
    return {};
  Status last;
  for (int i = 0; i < kResumes; ++i) {
    if (i > 0)
      std::this_thread::sleep_for(kBetween);
    const auto body = server.ask(*call, kResumeDeadline);
    if (body)
      return {};
    last = body.error();
  }
  return last;
}

Status pause_load_resume(Server& server,
                         const ServerVersion& next,
                         const Drain& drain,
                         CommitReport& report) {
  const auto load_paused = [&]() -> Status {
    {
      const Phase phase(server.clock(), report.pause);
      if (const auto call = server.api().pause()) {
        TEMPER_TRY(const std::string paused, server.ask(*call));
      }
    }
    {
      const Phase phase(server.clock(), report.drain);
      drain();
    }
    const Phase phase(server.clock(), report.load);
    return load(server, next, report.attempts);
  };
  Status loaded = load_paused();
  const Phase phase(server.clock(), report.resume);
  Status resumed = resume(server);
  if (!loaded)
    return loaded;
  return resumed;
}

Status check_canary(Server& server,
                    const Canary& canary,
                    const std::optional<Canary>& before,
                    CommitReport& report) {
  TEMPER_TRY(const std::vector<float> scores, server.score(canary.tokens));
  const double distance = mean_distance(scores, canary.logprobs);
  report.canary_distance = distance;
  const double tolerance = server.options().config.tolerance;
  if (distance > tolerance) {
    return corrupt(fmt::format(
        "the canary's log-probs differ from the trainer's by {:.3g} on average, more than {:.3g} "
        "(engine.tolerance): these are not the trained weights",
        distance,
        tolerance));
  }
  const bool comparable =
      before && before->tokens == canary.tokens && before->logprobs != canary.logprobs;
  if (comparable && mean_distance(scores, before->logprobs) < distance) {
    return corrupt(fmt::format(
        "the canary's log-probs are closer to the previous version ({:.3g}) than to the "
        "trainer's ({:.3g}): the new weights were not loaded",
        mean_distance(scores, before->logprobs),
        distance));
  }
  return {};
}

/// Samples a few tokens and scores them.
Status check_sampling(Server& server,
                      const std::string& label,
                      const Canary& canary,
                      CommitReport& report) {
  constexpr std::size_t kPrompt = 4;
  constexpr std::int64_t kTokens = 8;
  std::vector<std::int32_t> tokens(canary.tokens.begin(),
                                   canary.tokens.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                               kPrompt, canary.tokens.size() - 1)));
  const std::int64_t room =
      server.options().model.shape.context.count() - static_cast<std::int64_t>(tokens.size()) - 1;
  if (room < 1)
    return {};
  TEMPER_TRY(const std::string body,
             server.ask_data(
                 server.api().generate({"check-" + label, tokens, std::min(kTokens, room), label}),
                 std::chrono::seconds(30)));
  TEMPER_TRY(const GenerateReply reply, server.api().read_generated(body));
  if (reply.ended == GenerateReply::StopReason::Aborted)
    return corrupt("the server still aborts requests after it was resumed");
  if (reply.tokens.empty() || reply.tokens.size() != reply.logprobs.size()) {
    return corrupt(
        fmt::format("expected one log-prob per sampled token, found {} for {} tokens; start the "
                    "server with log-probs enabled",
                    reply.logprobs.size(),
                    reply.tokens.size()));
  }
  tokens.insert(tokens.end(), reply.tokens.begin(), reply.tokens.end());
  TEMPER_TRY(report.sampled_distance, sampled_distance(server, tokens, reply.logprobs));
  if (report.sampled_distance.value_or(0) > server.options().config.tolerance) {
    return corrupt(
        fmt::format("the log-probs of sampled tokens differ by {:.3g} from those that the same "
                    "server scores; for "
                    "vLLM set --logprobs-mode processed_logprobs",
                    *report.sampled_distance));
  }
  return {};
}

Status check(Server& server,
             const ServerVersion& next,
             const std::optional<Canary>& before,
             CommitReport& report) {
  const Phase phase(server.clock(), report.check);
  // For a server that does not report its weights, only the canary shows which it has.
  if (server.api().version()) {
    TEMPER_TRY(const std::string label, server.label());
    if (label != next.label) {
      return corrupt(
          fmt::format("the server reports weights \"{}\", expected \"{}\"", label, next.label));
    }
  }
  if (!next.canary)
    return {};
  TEMPER_TRY_STATUS(check_canary(server, *next.canary, before, report));
  return check_sampling(server, next.label, *next.canary, report);
}

}  // namespace

Status commit_version(Server& server,
                      const ServerVersion& next,
                      const std::optional<Canary>& before,
                      const Drain& drain,
                      CommitReport& report) {
  Status last;
  while (report.attempts < kCommitAttempts) {
    ++report.attempts;
    last = pause_load_resume(server, next, drain, report);
    if (last)
      last = check(server, next, before, report);
    if (last || last.error().code == ErrorCode::Unavailable)
      break;
    server.log().warning(
        "version not accepted",
        {{"label", next.label}, {"attempt", report.attempts}, {"why", last.error().context}});
  }
  if (last && !next.canary)
    server.log().warning("the version has no canary; only its label was compared",
                         {{"label", next.label}});
  return last;
}

Status load_released(Server& server, const ServerVersion& next, CommitReport& report) {
  const Phase phase(server.clock(), report.load);
  TEMPER_TRY_STATUS(server.regain(ServerMemory::Weights));
  Status last;
  while (report.attempts < kCommitAttempts) {
    ++report.attempts;
    last = load(server, next, report.attempts);
    if (last || last.error().code == ErrorCode::Unavailable)
      break;
    server.log().warning(
        "version not loaded",
        {{"label", next.label}, {"attempt", report.attempts}, {"why", last.error().context}});
  }
  return last;
}

Status wake_released(Server& server,
                     const ServerVersion& next,
                     const std::optional<Canary>& before,
                     CommitReport& report) {
  {
    const Phase phase(server.clock(), report.resume);
    TEMPER_TRY_STATUS(server.regain(ServerMemory::KvCache));
    TEMPER_TRY_STATUS(resume(server));
  }
  return check(server, next, before, report);
}

Status take_over(Server& server) {
  if (server.options().takes_turns) {
    for (const ServerCall& call : server.api().wake()) {
      TEMPER_TRY(const std::string body, server.ask(call));
    }
  }
  for (const ServerCall& call : server.api().abort({})) {
    if (const auto body = server.ask(call, kResumeDeadline); !body)
      server.log().warning("cannot abort requests that may still run",
                           {{"why", body.error().context}});
  }
  return resume(server);
}

Status warm_up(Server& server) {
  const ServerOptions& options = server.options();
  const std::vector<std::int32_t> tokens =
      canary_tokens(options.model.vocabulary, options.model.shape.context);
  const std::vector<ServerCall> calls{
      server.api().generate({"warm-up", std::span(tokens).first(2), 1, "warm-up"}),
      server.api().score(std::span(tokens).first(2))};
  for (const ServerCall& call : calls) {
    const auto body = server.ask_data(call, options.config.patience);
    if (!body && body.error().code == ErrorCode::Unavailable)
      return body.error();
  }
  return {};
}

Result<std::optional<double>> sampled_distance(Server& server,
                                               std::span<const std::int32_t> tokens,
                                               std::span<const float> sampled) {
  const ServerSampling& sampling = server.api().sampling();
  if (sampling.temperature != 1 || sampling.top_p != 1 || sampled.empty())
    return std::optional<double>();
  // If each token needs a request, check only some of them.
  constexpr std::size_t kOneByOne = 8;
  if (!server.api().scores_at_once())
    sampled = sampled.last(std::min(sampled.size(), kOneByOne));
  TEMPER_TRY(const std::vector<float> scores, server.score(tokens, tokens.size() - sampled.size()));
  if (scores.size() != sampled.size())
    return corrupt("expected a score for each sampled token, found fewer");
  return std::optional<double>(mean_distance(scores, sampled));
}

}  // namespace temper::actors
