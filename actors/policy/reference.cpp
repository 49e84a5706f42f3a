#include "actors/policy/reference.hpp"

#include "actors/policy/transformer.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace temper::actors {

namespace {

class TorchReference final : public ReferenceEngine {
 public:
  TorchReference(const TorchReferenceOptions& options, Weights weights)
      : options_(options), weights_(std::move(weights)), network_(weights_) {}

  Result<ReferenceScores> score(std::span<const ScoringRequest> batch) override {
    ReferenceScores result;
    result.logprobs.reserve(batch.size());
    if (options_.top_k > 0)
      result.top.emplace().reserve(batch.size());
    Pack pack;
    std::size_t packed_from = 0;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      TEMPER_TRY_STATUS(check(batch[i]));
      const bool full = pack.rows() + static_cast<std::int64_t>(batch[i].prompt.size()) +
                            Pack::rows_of_response(batch[i].response) >
                        options_.micro_batch_tokens.count();
      if (full && pack.rows() > 0) {
        flush(pack, batch.subspan(packed_from, i - packed_from), result);
        packed_from = i;
      }
      if (i == packed_from || batch[i].prompt != batch[i - 1].prompt)
        pack.add_prompt(batch[i].prompt);
      pack.add_response(batch[i].response);
    }
    flush(pack, batch.subspan(packed_from), result);
    return result;
  }

  Bytes memory() const override {
    return Bytes(weights_.layout().size() * static_cast<std::int64_t>(sizeof(float)));
  }

 private:
  Status check(const ScoringRequest& request) const {
    const auto bad = [&](std::int32_t t) { return t < 0 || t >= options_.vocabulary; };
    const auto total = static_cast<std::int64_t>(request.prompt.size() + request.response.size());
    if (request.prompt.empty() || total > options_.model.context.count()) {
      return invalid_input(
          fmt::format("a prompt of {} and a response of {} tokens exceed the context "
                      "of {}",
                      request.prompt.size(),
                      request.response.size(),
                      options_.model.context.count()));
    }
    if (std::any_of(request.prompt.begin(), request.prompt.end(), bad) ||
        std::any_of(request.response.begin(), request.response.end(), bad))
      return invalid_input(fmt::format(
          "expected token ids below {}, found one outside the vocabulary", options_.vocabulary));
    return {};
  }

  void flush(Pack& pack, std::span<const ScoringRequest> packed, ReferenceScores& result) {
    const Transformer::Scores scores = network_.score(pack, options_.temperature, options_.top_k);
    const auto k = static_cast<std::size_t>(options_.top_k);
    std::size_t at = 0;
    const auto own = [&at](const auto& values, std::size_t size, std::size_t each) {
      const auto part = std::span(values).subspan(at * each, size * each);
      return std::vector(part.begin(), part.end());
    };
    for (const ScoringRequest& request : packed) {
      const std::size_t size = request.response.size();
      result.logprobs.push_back(own(scores.logprobs, size, 1));
      if (result.top)
        result.top->push_back({own(scores.top.ids, size, k), own(scores.top.logprobs, size, k)});
      at += size;
    }
    pack.clear();
  }

  const TorchReferenceOptions options_;
  Weights weights_;
  Transformer network_;
};

}  // namespace

std::unique_ptr<ReferenceEngine> make_torch_reference(const TorchReferenceOptions& options,
                                                      Weights weights) {
  return std::make_unique<TorchReference>(options, std::move(weights));
}

}  // namespace temper::actors
