#include "actors/server/server_reference.hpp"

#include "actors/server/version_commit.hpp"

#include <fmt/format.h>

#include <map>

namespace temper::actors {
namespace {

constexpr Duration kDeadline = std::chrono::minutes(5);
constexpr int kScoringAttempts = 5;

class ServerReference final : public ReferenceEngine {
 public:
  ServerReference(std::unique_ptr<Server> server, ServerVersion weights)
      : server_(std::move(server)), weights_(std::move(weights)) {}

  Status bring() {
    CommitReport report;
    TEMPER_TRY_STATUS(server_->await(weights_.folder));
    TEMPER_TRY_STATUS(take_over(*server_));
    if (!server_->api().scores_at_once()) {
      return Error{
          ErrorCode::Unsupported,
          "the server supports neither prompt_logprobs nor echo for the log-probs of a prompt: "
          "it cannot be used as the reference"};
    }
    TEMPER_TRY_STATUS(warm_up(*server_));
    if (server_->api().loading() == ServerApi::Loading::Never)
      return find_as_it_was();
    return commit_version(
        *server_, weights_, {}, [] {}, report);
  }

  /// Sends all requests at once and retries the failed ones after the server's weights have been
  /// verified.
  Result<ReferenceScores> score(std::span<const ScoringRequest> batch) override {
    std::vector<std::vector<float>> scores(batch.size());
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (!batch[i].response.empty())
        open.push_back(i);
    }
    for (int attempt = 1; !open.empty(); ++attempt) {
      TEMPER_TRY(std::vector<std::size_t> failed, try_score(batch, open, scores));
      // Read after all responses: a restart in between would have changed the label.
      const auto label = server_->label();
      if (label && *label == weights_.label) {
        open = std::move(failed);
      } else {
        server_->log().warning("the reference server has changed",
                               {{"why", label ? "its label is " + *label : label.error().context}});
        TEMPER_TRY_STATUS(bring());
      }
      if (!open.empty() && attempt == kScoringAttempts)
        return Error{ErrorCode::Internal, "the server could not score: " + last_failure_};
    }
    return ReferenceScores{std::move(scores)};
  }

  Bytes memory() const override { return Bytes(); }

 private:
  /// A server whose weights cannot be changed is used as it is, as long as its weights stay the
  /// same.
  Status find_as_it_was() {
    if (!met_) {
      server_->log().info("using the weights that the reference server has", {});
      TEMPER_TRY_STATUS(server_->trust(weights_));
      met_ = true;
      return {};
    }
    const auto label = server_->label();
    return label ? Status() : Status(Error(label.error()).within("the reference server"));
  }

  /// Returns the indices of the failed requests.
  Result<std::vector<std::size_t>> try_score(std::span<const ScoringRequest> batch,
                                             const std::vector<std::size_t>& open,
                                             std::vector<std::vector<float>>& scores) {
    struct SentRequest {
      std::size_t index;
      std::vector<std::int32_t> tokens;
    };
    std::map<HttpClient::Ticket, SentRequest> sent;
    for (const std::size_t i : open) {
      std::vector<std::int32_t> tokens = batch[i].prompt;
      tokens.insert(tokens.end(), batch[i].response.begin(), batch[i].response.end());
      ServerCall call = server_->api().score(tokens);
      const auto ticket = server_->data().send({std::move(call.method),
                                                std::move(call.target),
                                                std::move(call.body),
                                                kDeadline,
                                                largest_answer(tokens.size())});
      sent.emplace(ticket, SentRequest{i, std::move(tokens)});
    }
    std::vector<std::size_t> failed;
    while (!sent.empty()) {
      for (auto& [ticket, answer] : server_->data().take(kDeadline)) {
        const auto asked = sent.find(ticket);
        const std::size_t i = asked->second.index;
        Result<std::vector<float>> all =
            answer.good() ? server_->api().read_scores(answer.body, asked->second.tokens)
                          : Error{ErrorCode::Internal,
                                  answer.status == 0 ? answer.failure
                                                     : fmt::format("status {}: {}",
                                                                   answer.status,
                                                                   answer.body.substr(0, 200))};
        if (all && all->size() >= batch[i].response.size()) {
          const auto n = static_cast<std::ptrdiff_t>(batch[i].response.size());
          scores[i].assign(all->end() - n, all->end());
        } else {
          last_failure_ = all ? "an empty prompt" : all.error().context;
          failed.push_back(i);
        }
        sent.erase(asked);
      }
    }
    return failed;
  }

  std::unique_ptr<Server> server_;
  const ServerVersion weights_;
  bool met_ = false;
  std::string last_failure_;
};

}  // namespace

Result<std::unique_ptr<ReferenceEngine>> make_server_reference(std::unique_ptr<Server> server,
                                                               std::span<const std::byte> weights) {
  TEMPER_TRY(ServerVersion base, server->write(PolicyVersion(0), weights));
  auto engine = std::make_unique<ServerReference>(std::move(server), std::move(base));
  TEMPER_TRY_STATUS(engine->bring());
  return std::unique_ptr<ReferenceEngine>(std::move(engine));
}

}  // namespace temper::actors
