#include "orchestrator/scheduler/problems/problem_sampler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace temper::orchestrator {
namespace {

/// One draw, in units of credit.
constexpr std::int64_t kOne = std::int64_t{1} << 32;

/// The shares of the sources at this step; their sum is exactly kOne. What rounding leaves goes to
/// the first source of the largest weight. Without any weight the shares are equal.
std::vector<std::int64_t> shares_at(const ProblemPlan& plan, std::uint64_t step) {
  std::vector<double> weights;
  double sum = 0;
  for (const ProblemSource& source : plan.sources) {
    weights.push_back(std::max(0.0, source.weight(step)));
    sum += weights.back();
  }
  if (!(sum > 0) || !std::isfinite(sum)) {
    weights.assign(weights.size(), 1);
    sum = static_cast<double>(weights.size());
  }
  std::vector<std::int64_t> shares;
  std::int64_t left = kOne;
  for (const double weight : weights) {
    shares.push_back(static_cast<std::int64_t>(weight / sum * static_cast<double>(kOne)));
    left -= shares.back();
  }
  shares[static_cast<std::size_t>(std::ranges::max_element(weights) - weights.begin())] += left;
  return shares;
}

/// The number of further draws after which a source with this credit must have been drawn.
std::int64_t slack(std::int64_t credit, std::int64_t share) {
  return credit >= kOne ? 0 : (kOne - credit + share - 1) / share;
}

}  // namespace

/// Among the sources that have got less than their share, the one whose share is next to exceed its
/// draws by a whole one.
std::size_t ProblemSampler::next_source(const ProblemPlan& plan, std::uint64_t step) {
  const std::vector<std::int64_t> shares = shares_at(plan, step);
  std::optional<std::size_t> best;
  const auto is_before = [&](std::size_t a, std::size_t b) {
    const std::int64_t of_a = sources_[a].credit, of_b = sources_[b].credit;
    if ((of_a > 0) != (of_b > 0))
      return of_a > 0;
    const std::int64_t slack_a = slack(of_a, shares[a]), slack_b = slack(of_b, shares[b]);
    return slack_a != slack_b ? slack_a < slack_b : of_a > of_b;
  };
  for (std::size_t k = 0; k < sources_.size(); ++k) {
    sources_[k].credit += shares[k];
    if (shares[k] > 0 && (!best || is_before(k, *best)))
      best = k;
  }
  sources_[*best].credit -= kOne;
  return *best;
}

Draw ProblemSampler::draw(const ProblemPlan& plan, GroupId group, std::uint64_t step) {
  if (sources_.empty()) {
    sources_.resize(plan.sources.size());
    // Builds before this part gave group n the n-th problem.
    if (sources_.size() == 1)
      sources_.front().position = group.value();
  }
  const std::size_t k = next_source(plan, step);
  const EpochOrder order = plan.order(k);
  Source& source = sources_[k];
  for (std::uint64_t skipped = 0;; ++skipped) {
    const std::uint64_t position = source.position++;
    const std::uint64_t problem = order.at(position), epoch = order.epoch(position);
    const auto aside = source.set_aside.find(problem);
    // After a whole pass that found none, the next one is as good as any.
    if (aside != source.set_aside.end() && aside->second > epoch && skipped < order.size)
      continue;
    if (aside != source.set_aside.end())
      source.set_aside.erase(aside);
    const auto index = static_cast<std::uint32_t>(k);
    outstanding_[group] = {index, problem, epoch};
    return {index, position, problem, source.set_aside.size()};
  }
}

void ProblemSampler::group_left(const ProblemPlan& plan,
                                GroupId group,
                                std::optional<double> pass_rate) {
  const auto it = outstanding_.find(group);
  if (it == outstanding_.end())
    return;
  const Drawn drawn = it->second;
  outstanding_.erase(it);
  if (!pass_rate)
    return;
  auto& set_aside = sources_[drawn.source].set_aside;
  if (plan.set_aside.applies_to(*pass_rate))
    set_aside[drawn.problem] = drawn.epoch + plan.set_aside.epochs + 1;
  else
    set_aside.erase(drawn.problem);
}

std::optional<std::uint32_t> ProblemSampler::teacher(const ProblemPlan& plan, GroupId group) const {
  if (!plan.teachers)
    return 0;
  const auto it = outstanding_.find(group);
  if (it == outstanding_.end())
    return std::nullopt;
  return plan.teachers->of(it->second.source, it->second.problem);
}

std::string ProblemSampler::impossible_field(const ProblemPlan& plan) const {
  if (sources_.empty())
    return outstanding_.empty() ? "" : "problems of groups, but no source";
  if (sources_.size() != plan.sources.size())
    return fmt::format("{} sources of problems", sources_.size());
  const auto most = static_cast<std::int64_t>(sources_.size() + 1) * kOne;
  for (std::size_t k = 0; k < sources_.size(); ++k) {
    const Source& source = sources_[k];
    const std::uint64_t problems = plan.sources[k].problems;
    if (source.credit < -most || source.credit > most)
      return fmt::format("a share of {} draws of source {}", source.credit / kOne, k);
    if (!source.set_aside.empty() && source.set_aside.rbegin()->first >= problems)
      return fmt::format("problem {} of {} set aside", source.set_aside.rbegin()->first, problems);
  }
  for (const auto& [group, drawn] : outstanding_) {
    if (drawn.source >= sources_.size() || drawn.problem >= plan.sources[drawn.source].problems)
      return fmt::format("group {} of problem {}", group, drawn.problem);
  }
  return {};
}

}  // namespace temper::orchestrator
