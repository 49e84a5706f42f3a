#include "rollout/synthetic_engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace temper::rollout {

Result<StepResult> SyntheticEngine::step() {
  StepResult result;
  const Time until = clock_.now() + options_.step_time;
  const auto length = static_cast<std::size_t>(options_.tokens.count());
  const auto batch = std::min(queue_.size(), static_cast<std::size_t>(options_.concurrency));
  for (std::size_t i = 0; i < batch; ++i) {
    const GenerationRequest request = std::move(queue_.front());
    queue_.pop_front();
    Generation done;
    done.id = request.id;
    done.tokens.resize(length - std::min(length, request.prefix.size()));
    std::iota(done.tokens.begin(),
              done.tokens.end(),
              static_cast<std::int32_t>(request.id.value() & 0xff));
    done.logprobs.assign(done.tokens.size(), -1.0F);
    done.segments = {{version_, Tokens(static_cast<std::int64_t>(done.tokens.size()))}};
    done.finish = actors::FinishReason::Length;
    result.tokens += done.segments.front().tokens;
    result.finished.push_back(std::move(done));
  }
  if (batch > 0)
    result.kind = StepKind::Decode;
  while (batch > 0 && clock_.now() < until) {
  }
  return result;
}

std::vector<Generation> SyntheticEngine::interrupt() {
  std::vector<Generation> out;
  for (const GenerationRequest& request : queue_) {
    out.push_back({request.id, {}, {}, {}, actors::FinishReason::Interrupted});
  }
  queue_.clear();
  return out;
}

void SyntheticEngine::cancel(std::span<const ResponseId> ids) {
  std::erase_if(queue_, [&](const GenerationRequest& r) {
    return std::find(ids.begin(), ids.end(), r.id) != ids.end();
  });
}

Status SyntheticEngine::stage(PolicyVersion version, std::span<const std::byte> weights) {
  const std::lock_guard lock(staging_);
  staged_ = {version, Bytes(static_cast<std::int64_t>(weights.size()))};
  return {};
}

Status SyntheticEngine::commit(PolicyVersion version) {
  const std::lock_guard lock(staging_);
  if (!staged_ || staged_->first != version) {
    return invalid_input(fmt::format("version {} is not what was staged", version));
  }
  version_ = version;
  memory_.weights = staged_->second;
  staged_.reset();
  return {};
}

Status SyntheticEngine::free_kv() {
  memory_.kv = Bytes(0);
  return {};
}

Status SyntheticEngine::allocate_kv() {
  memory_.kv = Bytes(options_.concurrency * options_.tokens.count());
  return {};
}

Status SyntheticEngine::free_weights() {
  memory_.weights = Bytes(0);
  return {};
}

}  // namespace temper::rollout
