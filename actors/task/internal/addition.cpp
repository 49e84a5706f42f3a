#include "actors/task/internal/addition.hpp"

#include "actors/task/internal/problem_columns.hpp"
#include "core/random.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace temper::actors {

namespace {

// Fixed, so that every run holds out the same problems, whatever its seed.
constexpr std::uint64_t kSplitKey = 0x5d1f0c8e6b2a4973ULL;
constexpr std::uint64_t kHeldOutKey = 0xa3b1956c07de42f8ULL;  // Determines the order in held_out().

struct Pair {
  std::uint64_t a = 0;
  std::uint64_t b = 0;
};

/// The number of items in a share of `n`: at least one if the share is positive, never all.
std::uint64_t share_of(std::uint64_t n, double share) {
  if (share <= 0 || n < 2)
    return 0;
  const auto wanted = static_cast<std::uint64_t>(std::llround(static_cast<double>(n) * share));
  return std::clamp<std::uint64_t>(wanted, 1, n - 1);
}

/// There are two kinds of pairs (a, b) of numbers below `m`: m doubles (a, a), and m (m - 1) / 2
/// couples {a, b} with a != b, each of which stands for two problems. Each kind is shuffled once
/// with a fixed key, and the first ones are held out.
class AdditionSource final : public PromptSource {
 public:
  AdditionSource(const TaskConfig& task, std::uint64_t seed, std::string source)
      : PromptSource(task, seed),
        source_(std::move(source)),
        digits_(static_cast<std::size_t>(task.digits)),
        reverse_(task.reverse_answer),
        numbers_(static_cast<std::uint64_t>(std::llround(std::pow(10.0, task.digits)))),
        couples_(numbers_ / 2 * (numbers_ - 1)),
        held_couples_(share_of(couples_, task.held_out)),
        held_doubles_(share_of(numbers_, task.held_out)) {}

  std::vector<ProblemSet> sets() const override {
    const std::uint64_t problems = 2 * train_couples() + (numbers_ - held_doubles_);
    return {{source_, "addition", problems, held_out_size()}};
  }

  Problem problem(std::size_t /*set*/, std::uint64_t i) const override {
    const std::uint64_t couples = train_couples();
    return i < 2 * couples ? problem(couple(held_couples_ + i / 2, i % 2))
                           : problem(twice(held_doubles_ + i - 2 * couples));
  }

  Problem held_out(std::uint64_t index) const override {
    const std::uint64_t size = held_out_size();
    TEMPER_CHECK(size > 0, "no problem is held out");
    const std::uint64_t i = permuted(index % size, size, kHeldOutKey);
    return i < 2 * held_couples_ ? problem(couple(i / 2, i % 2))
                                 : problem(twice(i - 2 * held_couples_));
  }

  std::uint64_t held_out_size() const override { return 2 * held_couples_ + held_doubles_; }
  Result<Tokens> longest_prompt(const Tokenizer&) const override {
    return Tokens(static_cast<std::int64_t>(2 * digits_ + 2));  // One token per character.
  }

 private:
  std::uint64_t train_couples() const { return couples_ - held_couples_; }

  /// Couple number `i` of the fixed shuffle, in either order. Couples are numbered by their
  /// distance on a ring of m numbers, 1 to m/2; distance m/2 has half as many.
  Pair couple(std::uint64_t i, std::uint64_t mirror) const {
    const std::uint64_t c = permuted(i, couples_, kSplitKey);
    const std::uint64_t a = c % numbers_;
    const std::uint64_t b = (a + 1 + c / numbers_) % numbers_;
    return mirror == 0 ? Pair{a, b} : Pair{b, a};
  }

  Pair twice(std::uint64_t i) const {
    const std::uint64_t a = permuted(i, numbers_, kSplitKey);
    return {a, a};
  }

  Problem problem(Pair p) const {
    Problem out;
    out.prompt = fmt::format("{:0{}}+{:0{}}=", p.a, digits_, p.b, digits_);
    out.answer = fmt::format("{:0{}}", p.a + p.b, digits_ + 1);
    if (reverse_)
      std::reverse(out.answer.begin(), out.answer.end());
    set_source(out, source_);
    return out;
  }

  const std::string source_;
  const std::size_t digits_;
  const bool reverse_;
  const std::uint64_t numbers_;  ///< m, even.
  const std::uint64_t couples_;
  const std::uint64_t held_couples_;
  const std::uint64_t held_doubles_;
};

}  // namespace

Result<std::unique_ptr<PromptSource>> make_addition_source(const TaskConfig& task,
                                                           std::uint64_t seed,
                                                           const std::string& source) {
  if (task.digits < 1 || task.digits > 9)
    return invalid_input(fmt::format("task.digits: expected 1 to 9, found {}", task.digits));
  return std::unique_ptr<PromptSource>(std::make_unique<AdditionSource>(task, seed, source));
}

}  // namespace temper::actors
