#include "rollout/synthetic_engine.hpp"

#include "core/pass_time.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <unordered_set>

namespace temper::rollout {

namespace {

constexpr std::int32_t kFirstToken = 2;  // After pad and end.
constexpr std::uint64_t kPatterns = 128;

}  // namespace

Result<StepResult> SyntheticEngine::step() {
  StepResult result;
  if (queue_.empty())
    return result;
  if (!has_weights_ || memory_.kv.count() == 0)
    return Error{ErrorCode::Unavailable,
                 "synthetic engine: step() requires weights and a KV cache"};
  const Time until = clock_.now() + options_.step_time;
  const auto batch = std::min(queue_.size(), static_cast<std::size_t>(options_.concurrency));
  result.kind = StepKind::Decode;
  result.finished.reserve(batch);
  for (std::size_t i = 0; i < batch; ++i) {
    result.finished.push_back(generate(queue_.front()));
    result.tokens += Tokens(static_cast<std::int64_t>(result.finished.back().tokens.size()));
    queue_.pop_front();
  }
  pass_time(clock_, until);
  return result;
}

Generation SyntheticEngine::generate(const GenerationRequest& request) const {
  const auto length = static_cast<std::size_t>(options_.tokens.count());
  const std::size_t done = std::min(length, request.prefix.size());
  Generation out;
  out.id = request.id;
  out.tokens.resize(length - done);
  const auto first = kFirstToken + static_cast<std::int32_t>(request.id.value() % kPatterns);
  std::iota(out.tokens.begin(), out.tokens.end(), first + static_cast<std::int32_t>(done));
  out.logprobs.assign(out.tokens.size(), -1.0F);
  if (!out.tokens.empty())
    out.segments = {{version_, Tokens(static_cast<std::int64_t>(out.tokens.size()))}};
  out.finish = actors::FinishReason::Length;
  return out;
}

std::vector<Generation> SyntheticEngine::interrupt() {
  std::vector<Generation> out;
  for (const GenerationRequest& request : queue_) {
    out.push_back({request.id, {}, {}, {}, actors::FinishReason::Interrupted});
  }
  queue_.clear();
  return out;
}

std::vector<Generation> SyntheticEngine::withdraw(std::span<const ResponseId> ids) {
  const std::unordered_set<ResponseId> leaving(ids.begin(), ids.end());
  std::vector<Generation> out;
  for (const GenerationRequest& request : queue_) {
    if (leaving.contains(request.id))
      out.push_back({request.id, {}, {}, {}, actors::FinishReason::Interrupted});
  }
  cancel(ids);
  return out;
}

void SyntheticEngine::cancel(std::span<const ResponseId> ids) {
  const std::unordered_set<ResponseId> gone(ids.begin(), ids.end());
  std::erase_if(queue_, [&](const GenerationRequest& r) { return gone.contains(r.id); });
}

Status SyntheticEngine::stage(PolicyVersion version, std::span<const std::byte> weights) {
  const MutexLock lock(staging_);
  staged_ = {version, Bytes(static_cast<std::int64_t>(weights.size()))};
  return {};
}

Status SyntheticEngine::commit(PolicyVersion version) {
  const MutexLock lock(staging_);
  if (!staged_ || staged_->first != version) {
    return invalid_input(fmt::format("commit of version {}: it was not staged", version));
  }
  if (version < version_)
    return invalid_input(
        fmt::format("commit of version {}: the engine already has version {}", version, version_));
  version_ = version;
  has_weights_ = true;
  memory_.weights = staged_->second;
  staged_.reset();
  return {};
}

bool SyntheticEngine::reset_for_resume() {
  static_cast<void>(interrupt());
  const MutexLock lock(staging_);
  staged_.reset();
  version_ = PolicyVersion(0);
  return true;
}

void SyntheticEngine::allocate() {
  memory_.kv = Bytes(options_.concurrency * options_.tokens.count());
}

Status SyntheticEngine::free_kv() {
  TEMPER_TRY_STATUS(require_idle(load(), "free_kv"));
  memory_.kv = Bytes(0);
  return {};
}

Status SyntheticEngine::allocate_kv() {
  TEMPER_TRY_STATUS(require_idle(load(), "allocate_kv"));
  allocate();
  return {};
}

Status SyntheticEngine::free_weights() {
  TEMPER_TRY_STATUS(require_idle(load(), "free_weights"));
  memory_.weights = Bytes(0);
  has_weights_ = false;
  return {};
}

EngineMemory SyntheticEngine::memory() const {
  EngineMemory memory = memory_;
  const MutexLock lock(staging_);
  if (staged_)
    memory.weights += staged_->second;
  return memory;
}

}  // namespace temper::rollout
