#include "actors/task/internal/sum_verifier.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace temper::actors {
namespace {

class SumVerifier final : public Verifier {
 public:
  void add(const std::string& name, std::unique_ptr<Verifier> verifier, double weight) {
    names_.push_back(name);
    terms_.push_back({std::move(verifier), weight});
  }

  std::vector<Verdict> judge(std::span<const JudgeRequest> batch) override {
    std::vector<Verdict> sums(batch.size());
    for (std::size_t t = 0; t < terms_.size(); ++t) {
      const std::vector<Verdict> verdicts = terms_[t].verifier->judge(batch);
      for (std::size_t i = 0; i < batch.size(); ++i) {
        Verdict& sum = sums[i];
        sum.terms.push_back(verdicts[i].reward);
        sum.reward += terms_[t].weight * verdicts[i].reward;
        if (sum.failure.empty() && !verdicts[i].failure.empty())
          sum.failure = fmt::format("{}: {}", names_[t], verdicts[i].failure);
      }
    }
    return sums;
  }

  bool gave_up() const override {
    return std::ranges::any_of(terms_, [](const Term& t) { return t.verifier->gave_up(); });
  }

  std::vector<std::string> terms() const override { return names_; }

 private:
  struct Term {
    std::unique_ptr<Verifier> verifier;
    double weight = 1;
  };
  std::vector<std::string> names_;
  std::vector<Term> terms_;
};

}  // namespace

Result<std::unique_ptr<Verifier>> make_sum_verifier(
    const std::map<std::string, VerifierTerm>& terms) {
  auto sum = std::make_unique<SumVerifier>();
  for (const auto& [name, term] : terms) {
    auto verifier = make_single_verifier(term);
    if (!verifier)
      return std::move(verifier).error().within("verifier.terms." + name);
    sum->add(name, *std::move(verifier), term.weight);
  }
  return std::unique_ptr<Verifier>(std::move(sum));
}

}  // namespace temper::actors
