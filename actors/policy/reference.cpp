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

  Result<std::vector<std::vector<float>>> score(std::span<const ScoringRequest> batch) override {
    std::vector<std::vector<float>> result;
    result.reserve(batch.size());
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

  void flush(Pack& pack,
             std::span<const ScoringRequest> packed,
             std::vector<std::vector<float>>& result) {
    auto logprobs = network_.forward(pack, options_.temperature, Graph::Discard);
    for (const ScoringRequest& request : packed) {
      const auto own = logprobs.first(request.response.size());
      result.emplace_back(own.begin(), own.end());
      logprobs = logprobs.subspan(own.size());
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
