#include "rollout/gateway/episode_row.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace temper::rollout {

std::vector<std::int32_t> EpisodeRow::context() const {
  std::vector<std::int32_t> all = prompt_;
  all.insert(all.end(), tokens_.begin(), tokens_.end());
  return all;
}

Status EpisodeRow::move_to(std::span<const std::int32_t> context, PolicyVersion version) {
  if (context.size() < prompt_.size() ||
      !std::ranges::equal(context.first(prompt_.size()), prompt_)) {
    return invalid_input(
        fmt::format("the request does not begin with the {} tokens of the episode's prompt, but "
                    "only a continuation of that prompt can be trained",
                    prompt_.size()));
  }
  const auto row = context.subspan(prompt_.size());
  const auto [mine, theirs] = std::ranges::mismatch(tokens_, row);
  const auto common = static_cast<std::size_t>(mine - tokens_.begin());
  if (common < tokens_.size()) {
    ++counts_.forks;
    cut_to(common);
  }
  const auto more = row.subspan(common);
  if (more.empty())
    return {};
  tokens_.insert(tokens_.end(), more.begin(), more.end());
  logprobs_.resize(tokens_.size(), 0.0F);
  mask_.resize(tokens_.size(), 0);
  counts_.given += more.size();
  add_segment(version, more.size());
  return {};
}

void EpisodeRow::cut_to(std::size_t length) {
  const auto keep = static_cast<std::ptrdiff_t>(length);
  const auto sampled =
      static_cast<std::size_t>(std::count(mask_.begin() + keep, mask_.end(), std::uint8_t{1}));
  counts_.dropped += sampled;
  counts_.sampled -= sampled;
  counts_.given -= mask_.size() - length - sampled;
  tokens_.resize(length);
  logprobs_.resize(length);
  mask_.resize(length);
  std::size_t at = 0;
  std::vector<actors::Segment> kept;
  for (const actors::Segment& s : segments_) {
    const auto size = std::min(static_cast<std::size_t>(s.tokens.count()), length - at);
    if (size > 0)
      kept.push_back({s.version, Tokens(static_cast<std::int64_t>(size))});
    at += size;
  }
  segments_ = std::move(kept);
}

void EpisodeRow::add_segment(PolicyVersion version, std::size_t tokens) {
  if (segments_.empty() || segments_.back().version != version)
    segments_.push_back({version, Tokens(0)});
  segments_.back().tokens += Tokens(static_cast<std::int64_t>(tokens));
}

void EpisodeRow::add(const Generation& turn) {
  ++counts_.turns;
  counts_.sampled += turn.tokens.size();
  tokens_.insert(tokens_.end(), turn.tokens.begin(), turn.tokens.end());
  logprobs_.insert(logprobs_.end(), turn.logprobs.begin(), turn.logprobs.end());
  mask_.resize(tokens_.size(), 1);
  for (const actors::Segment& s : turn.segments)
    add_segment(s.version, static_cast<std::size_t>(s.tokens.count()));
}

Generation EpisodeRow::finish(ResponseId id, actors::FinishReason finish, double reward) && {
  Generation row;
  row.id = id;
  row.finish = finish;
  if (reward != 0 && !tokens_.empty()) {
    row.rewards.resize(tokens_.size(), 0.0F);
    row.rewards.back() = static_cast<float>(reward);
  }
  row.tokens = std::move(tokens_);
  row.logprobs = std::move(logprobs_);
  row.segments = std::move(segments_);
  row.mask = std::move(mask_);
  return row;
}

}  // namespace temper::rollout
