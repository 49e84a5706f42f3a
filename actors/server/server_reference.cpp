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
      return Error{ErrorCode::Unsupported,
                   "the server gives log-probs of a prompt neither as prompt_logprobs nor by echo: "
                   "it cannot be the reference"};
    }
    TEMPER_TRY_STATUS(warm_up(*server_));
    if (server_->api().loading() == ServerApi::Loading::Never)
      return find_as_it_was();
    return commit_version(
        *server_, weights_, {}, [] {}, report);
  }

  /// All at once; what fails is asked again once the server has its weights for certain.
  Result<std::vector<std::vector<float>>> score(std::span<const ScoringRequest> batch) override {
    std::vector<std::vector<float>> scores(batch.size());
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (!batch[i].response.empty())
        open.push_back(i);
    }
    for (int attempt = 1; !open.empty(); ++attempt) {
      TEMPER_TRY(std::vector<std::size_t> failed, try_score(batch, open, scores));
      // The label after all answers came: had it started again meanwhile, it would have another.
      const auto label = server_->label();
      if (label && *label == weights_.label) {
        open = std::move(failed);
      } else {
        server_->log().warning("reference server is not as it was",
                               {{"why", label ? "its label is " + *label : label.error().context}});
        TEMPER_TRY_STATUS(bring());
      }
      if (!open.empty() && attempt == kScoringAttempts)
        return Error{ErrorCode::Internal, "the server did not score: " + last_failure_};
    }
    return scores;
  }

  Bytes memory() const override { return Bytes(); }

 private:
  /// A server whose weights nobody can change is the reference with those that it has, as long as
  /// it has them.
  Status find_as_it_was() {
    if (!met_) {
      server_->log().info("reference server taken as it is", {});
      TEMPER_TRY_STATUS(server_->trust(weights_));
      met_ = true;
      return {};
    }
    const auto label = server_->label();
    return label ? Status() : Status(Error(label.error()).within("the reference server"));
  }

  /// Which failed.
  Result<std::vector<std::size_t>> try_score(std::span<const ScoringRequest> batch,
                                             const std::vector<std::size_t>& open,
                                             std::vector<std::vector<float>>& scores) {
    struct Sent {
      std::size_t index;
      std::vector<std::int32_t> tokens;
    };
    std::map<HttpClient::Ticket, Sent> sent;
    for (const std::size_t i : open) {
      std::vector<std::int32_t> tokens = batch[i].prompt;
      tokens.insert(tokens.end(), batch[i].response.begin(), batch[i].response.end());
      ServerCall call = server_->api().score(tokens);
      const auto ticket = server_->data().send({std::move(call.method),
                                                std::move(call.target),
                                                std::move(call.body),
                                                kDeadline,
                                                largest_answer(tokens.size())});
      sent.emplace(ticket, Sent{i, std::move(tokens)});
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
          last_failure_ = all ? "a prompt of no token" : all.error().context;
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
