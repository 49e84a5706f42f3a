#include "actors/task/internal/several_sources.hpp"

#include "actors/task/internal/addition.hpp"
#include "actors/task/internal/jsonl.hpp"
#include "core/alternation.hpp"

#include <algorithm>

namespace temper::actors {
namespace {

struct NamedSource {
  std::string name;
  std::unique_ptr<PromptSource> source;
};

class SeveralSources final : public PromptSource {
 public:
  SeveralSources(const TaskConfig& task, std::uint64_t seed, std::vector<NamedSource> sources)
      : PromptSource(task, seed), sources_(std::move(sources)) {
    for (const NamedSource& named : sources_) {
      held_out_.push_back(named.source->held_out_size());
      held_out_size_ += held_out_.back();
    }
  }

  std::vector<ProblemSet> sets() const override {
    std::vector<ProblemSet> sets;
    for (const NamedSource& named : sources_) {
      const ProblemSet set = named.source->sets().front();
      sets.push_back({named.name, named.name, set.problems, set.held_out});
    }
    return sets;
  }
  Problem problem(std::size_t set, std::uint64_t number) const override {
    return sources_[set].source->problem(0, number);
  }
  std::vector<std::uint8_t> teachers(std::size_t set) const override {
    return sources_[set].source->teachers(0);
  }
  Problem held_out(std::uint64_t index) const override;
  std::uint64_t held_out_size() const override { return held_out_size_; }
  Result<Tokens> longest_prompt(const Tokenizer& tokenizer) const override {
    Tokens longest(0);
    for (const NamedSource& named : sources_) {
      TEMPER_TRY(const Tokens of_source, named.source->longest_prompt(tokenizer));
      longest = std::max(longest, of_source);
    }
    return longest;
  }

 private:
  std::vector<NamedSource> sources_;
  std::vector<std::uint64_t> held_out_;  ///< Number of held-out problems of each source.
  std::uint64_t held_out_size_ = 0;
};

Problem SeveralSources::held_out(std::uint64_t index) const {
  TEMPER_CHECK(held_out_size_ > 0, "no problem is held out");
  const AlternatingItem place = alternating_item(held_out_, index % held_out_size_);
  return sources_[place.set].source->held_out(place.item);
}

/// The task that has only this source.
TaskConfig task_of(const TaskConfig& task, const TaskSource& source) {
  TaskConfig one = task;
  one.sources.clear();
  one.path = source.path;
  one.digits = source.digits.value_or(task.digits);
  return one;
}

}  // namespace

Result<std::unique_ptr<PromptSource>> make_several_sources(const TaskConfig& task,
                                                           std::uint64_t seed,
                                                           const PromptOptions& options) {
  std::vector<NamedSource> sources;
  for (const auto& [name, source] : task.sources) {
    const TaskConfig one = task_of(task, source);
    TEMPER_TRY(auto made,
               task.kind == TaskKind::Addition ? make_addition_source(one, seed, name)
                                               : make_jsonl_source(one, seed, options, name));
    sources.push_back({name, std::move(made)});
  }
  return std::unique_ptr<PromptSource>(
      std::make_unique<SeveralSources>(task, seed, std::move(sources)));
}

}  // namespace temper::actors
