#include "actors/task/addition.hpp"

#include "actors/task/split.hpp"
#include "core/random.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace temper::actors {
namespace {

constexpr std::uint64_t kSplitKey = 0x7465'6d70'6572'0001;  // The same for every run.

class Addition final : public PromptSource {
 public:
  Addition(const TaskConfig& task, std::uint64_t seed)
      : digits_(task.digits),
        reverse_answer_(task.reverse_answer),
        seed_(seed),
        operands_(power_of_ten(task.digits)),
        problems_(operands_ * operands_),
        held_out_(held_out_count(problems_, task.held_out)) {}

  Problem train(std::uint64_t index) const override {
    return problem(held_out_ + shuffled(index, problems_ - held_out_, seed_));
  }
  Problem held_out(std::uint64_t index) const override {
    TEMPER_CHECK(held_out_ > 0, "the task keeps no problem out of training");
    return problem(index % held_out_);
  }
  std::uint64_t held_out_size() const override { return held_out_; }
  std::size_t longest_prompt() const override {
    return 2 * static_cast<std::size_t>(digits_) + 2;  // a + b =
  }

 private:
  static std::uint64_t power_of_ten(std::int32_t n) {
    TEMPER_CHECK(n >= 1 && n <= 9, "digits outside the range that the configuration allows");
    std::uint64_t power = 1;
    for (; n > 0; --n)
      power *= 10;
    return power;
  }

  /// All problems in an order fixed for ever; the first held_out_ of them are held out.
  Problem problem(std::uint64_t position) const {
    const std::uint64_t pair = permuted(position, problems_, kSplitKey);
    const std::uint64_t a = pair / operands_;
    const std::uint64_t b = pair % operands_;
    Problem p{fmt::format("{:0{}}+{:0{}}=", a, digits_, b, digits_),
              fmt::format("{:0{}}", a + b, digits_ + 1)};
    if (reverse_answer_)
      std::reverse(p.answer.begin(), p.answer.end());
    return p;
  }

  const std::int32_t digits_;
  const bool reverse_answer_;
  const std::uint64_t seed_;
  const std::uint64_t operands_;
  const std::uint64_t problems_;
  const std::uint64_t held_out_;
};

}  // namespace

std::unique_ptr<PromptSource> make_addition(const TaskConfig& task, std::uint64_t seed) {
  return std::make_unique<Addition>(task, seed);
}

}  // namespace temper::actors
