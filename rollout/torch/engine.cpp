#include "rollout/torch/engine.hpp"

#include "actors/policy/decoder.hpp"
#include "actors/policy/sampler.hpp"
#include "rollout/torch/policy_versions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <unordered_set>

namespace temper::rollout {
namespace {

using actors::DecoderRow;
using actors::FinishReason;

/// A response in a slot. Its cache has every token but the last, which the next step feeds.
struct Sequence {
  GenerationRequest request;
  Generation out;
  std::int32_t slot = 0;
  std::int32_t cached = 0;
  std::int32_t last_token = 0;
  std::size_t limit = 0;  ///< Largest number of response tokens, including the prefix.
  bool outdated = false;  ///< Its cache has older weights, and must be recomputed.

  std::int32_t token(std::int32_t position) const {
    auto at = static_cast<std::size_t>(position);
    for (const auto* part : {&request.prompt, &request.prefix}) {
      if (at < part->size())
        return (*part)[at];
      at -= part->size();
    }
    return out.tokens[at];
  }
};

class TorchEngine final : public Engine {
 public:
  TorchEngine(const TorchEngineOptions& options,
              const actors::Layout& layout,
              PolicyVersions versions)
      : options_(options),
        versions_(std::move(versions)),
        decoder_(layout, options.concurrency),
        sampler_(options.sampling.temperature, options.sampling.top_p) {
    for (std::int32_t slot = options.concurrency; slot-- > 0;)
      free_slots_.push_back(slot);
  }

  void add(GenerationRequest request) override;
  Result<StepResult> step() override;
  std::size_t load() const override { return queue_.size() + running_.size() + settled_.size(); }
  std::vector<Generation> interrupt() override;
  std::vector<Generation> withdraw(std::span<const ResponseId> ids) override;
  void cancel(std::span<const ResponseId> ids) override;

  Status stage(PolicyVersion version, std::span<const std::byte> weights) override;
  Status commit(PolicyVersion version) override;
  PolicyVersion version() const override { return versions_.version(); }
  bool reset_for_resume() override;

  Status free_kv() override;
  Status allocate_kv() override;
  Status free_weights() override;
  EngineMemory memory() const override;

 private:
  std::size_t limit_of(const GenerationRequest& request) const;
  bool acceptable(const GenerationRequest& request) const;
  bool time_to_admit() const;
  Tokens prefill();
  Tokens recompute();
  void add_rows(const Sequence& running, std::int32_t from, std::int32_t to);
  void start(GenerationRequest request);
  Result<Tokens> decode(std::vector<Generation>& finished);
  void append(Sequence& running, const actors::SampledToken& sampled);
  bool is_done(Sequence& running) const;

  const TorchEngineOptions options_;

  PolicyVersions versions_;
  actors::Decoder decoder_;
  actors::Sampler sampler_;

  std::deque<GenerationRequest> queue_;
  std::vector<Sequence> running_;
  std::vector<Generation> settled_;  ///< Finished without a step: rejected, or a complete prefix.
  std::vector<std::int32_t> free_slots_;
  std::vector<DecoderRow> rows_;
};

std::size_t TorchEngine::limit_of(const GenerationRequest& request) const {
  const auto room = static_cast<std::size_t>(options_.model.context.count());
  const auto wanted = static_cast<std::size_t>(options_.sampling.max_new_tokens.count());
  const std::size_t whole = std::min(wanted, room - std::min(room, request.prompt.size()));
  if (!request.most)
    return whole;
  return std::min(whole, request.prefix.size() + static_cast<std::size_t>(request.most->count()));
}

bool TorchEngine::acceptable(const GenerationRequest& request) const {
  const auto in_vocabulary = [&](std::int32_t t) { return t >= 0 && t < options_.vocabulary; };
  return !request.prompt.empty() && limit_of(request) > 0 &&
         std::all_of(request.prompt.begin(), request.prompt.end(), in_vocabulary) &&
         std::all_of(request.prefix.begin(), request.prefix.end(), in_vocabulary);
}

void TorchEngine::add(GenerationRequest request) {
  Generation settled;
  settled.id = request.id;
  if (!acceptable(request)) {
    settled.finish = FinishReason::Failed;
    settled.failure =
        "its prompt is empty, leaves no space in model.context, or has tokens outside the "
        "vocabulary";
    settled_.push_back(std::move(settled));
  } else if (request.prefix.size() >= limit_of(request)) {
    settled.finish = FinishReason::Length;
    settled_.push_back(std::move(settled));
  } else {
    const auto at = options_.deadline_first
                        ? std::ranges::upper_bound(queue_, request.id, {}, &GenerationRequest::id)
                        : queue_.end();
    queue_.insert(at, std::move(request));
  }
}

Result<StepResult> TorchEngine::step() {
  StepResult result;
  result.finished = std::exchange(settled_, {});
  if (queue_.empty() && running_.empty())
    return result;
  if (!versions_.present() || decoder_.cache_bytes().count() == 0)
    return Error{ErrorCode::Unavailable, "rollout engine: step() requires weights and a KV cache"};
  result.tokens = recompute();
  if (result.tokens.count() > 0) {
    result.kind = StepKind::Prefill;
    return result;
  }
  if (time_to_admit()) {
    result.tokens = prefill();
    // A prompt of one token needs no prefill; then this step decodes.
    if (result.tokens.count() > 0) {
      result.kind = StepKind::Prefill;
      return result;
    }
  }
  TEMPER_TRY(result.tokens, decode(result.finished));
  result.kind = StepKind::Decode;
  return result;
}

/// A prefill for many responses costs about as much as for one, so it waits for a few free slots.
bool TorchEngine::time_to_admit() const {
  const std::size_t few = std::max<std::size_t>(1, options_.concurrency / 8);
  return !queue_.empty() && free_slots_.size() >= std::min(few, queue_.size());
}

Tokens TorchEngine::prefill() {
  rows_.clear();
  std::vector<std::size_t> computed;  // Indices in running_ whose own rows are in this step.
  std::vector<std::pair<std::size_t, std::size_t>> copies;
  while (!queue_.empty() && !free_slots_.empty() &&
         static_cast<std::int64_t>(rows_.size()) < options_.prefill_tokens.count()) {
    start(std::move(queue_.front()));
    queue_.pop_front();
    const std::size_t own = running_.size() - 1;
    const GenerationRequest& request = running_[own].request;
    const auto same = [&](std::size_t i) {
      return running_[i].request.prompt == request.prompt &&
             running_[i].request.prefix == request.prefix;
    };
    // Responses of a group are queued together, so the last one usually matches.
    if (!computed.empty() && same(computed.back())) {
      copies.emplace_back(computed.back(), own);
      continue;
    }
    computed.push_back(own);
    add_rows(running_[own], 0, running_[own].cached);
  }
  if (!rows_.empty())
    decoder_.forward(versions_.view(), rows_, actors::Decoder::Output::Nothing);
  for (const auto& [from, to] : copies)
    decoder_.copy_slot(running_[from].slot, running_[to].slot, running_[from].cached);
  return Tokens(static_cast<std::int64_t>(rows_.size()));
}

void TorchEngine::add_rows(const Sequence& running, std::int32_t from, std::int32_t to) {
  for (std::int32_t i = from; i < to; ++i)
    rows_.push_back({running.token(i), running.slot, i});
}

/// Recomputes caches of outdated responses, as many as a prefill holds: each prompt once, then the
/// remainder of each response.
Tokens TorchEngine::recompute() {
  std::vector<Sequence*> chosen;
  std::vector<std::pair<Sequence*, Sequence*>> copies;  ///< From one with the same prompt.
  std::int64_t rows = 0;
  rows_.clear();
  for (Sequence& r : running_) {
    if (!r.outdated || rows >= options_.prefill_tokens.count())
      continue;
    const auto of_prompt = static_cast<std::int32_t>(r.request.prompt.size()) - 1;
    const auto same = std::find_if(chosen.begin(), chosen.end(), [&](const Sequence* other) {
      return other->request.prompt == r.request.prompt;
    });
    if (same == chosen.end())
      add_rows(r, 0, of_prompt);
    else
      copies.emplace_back(*same, &r);
    rows += r.cached - (same == chosen.end() ? 0 : of_prompt);
    chosen.push_back(&r);
  }
  if (!rows_.empty())
    decoder_.forward(versions_.view(), rows_, actors::Decoder::Output::Nothing);
  for (const auto& [from, to] : copies)
    decoder_.copy_slot(
        from->slot, to->slot, static_cast<std::int32_t>(to->request.prompt.size()) - 1);
  rows_.clear();
  for (Sequence* r : chosen) {
    add_rows(*r, static_cast<std::int32_t>(r->request.prompt.size()) - 1, r->cached);
    r->outdated = false;
  }
  if (!rows_.empty())
    decoder_.forward(versions_.view(), rows_, actors::Decoder::Output::Nothing);
  return Tokens(rows);
}

void TorchEngine::start(GenerationRequest request) {
  Sequence running;
  running.out.id = request.id;
  running.slot = free_slots_.back();
  free_slots_.pop_back();
  running.cached = static_cast<std::int32_t>(request.prompt.size() + request.prefix.size()) - 1;
  running.last_token = request.prefix.empty() ? request.prompt.back() : request.prefix.back();
  running.limit = limit_of(request);
  running.request = std::move(request);
  running_.push_back(std::move(running));
}

Result<Tokens> TorchEngine::decode(std::vector<Generation>& finished) {
  rows_.clear();
  for (const Sequence& r : running_)
    rows_.push_back({r.last_token, r.slot, r.cached});
  const auto logits = decoder_.forward(versions_.view(), rows_, actors::Decoder::Output::Logits);
  const auto width = static_cast<std::size_t>(options_.vocabulary);
  for (std::size_t i = 0; i < running_.size(); ++i) {
    Sequence& r = running_[i];
    const auto position = static_cast<std::int64_t>(r.request.prefix.size() + r.out.tokens.size());
    const auto row = logits.subspan(i * width, width);
    const double u = actors::sampling_uniform(options_.seed, r.out.id, position);
    const actors::SampledToken sampled =
        r.request.greedy ? sampler_.likeliest(row) : sampler_.draw(row, u);
    if (sampled.token < 0)
      return Error{ErrorCode::NotFinite,
                   fmt::format("rollout engine: logits of version {} are not finite", version())};
    append(r, sampled);
  }
  const Tokens sampled(static_cast<std::int64_t>(running_.size()));
  for (std::size_t i = 0; i < running_.size();) {
    if (!is_done(running_[i])) {
      ++i;
      continue;
    }
    free_slots_.push_back(running_[i].slot);
    finished.push_back(std::move(running_[i].out));
    std::swap(running_[i], running_.back());
    running_.pop_back();
  }
  return sampled;
}

void TorchEngine::append(Sequence& running, const actors::SampledToken& sampled) {
  Generation& out = running.out;
  out.tokens.push_back(sampled.token);
  out.logprobs.push_back(sampled.logprob);
  if (out.segments.empty() || out.segments.back().version != version())
    out.segments.push_back({version(), Tokens(0)});
  out.segments.back().tokens += Tokens(1);
  running.last_token = sampled.token;
  ++running.cached;
}

/// Also sets the reason.
bool TorchEngine::is_done(Sequence& running) const {
  const auto among = [&](const std::vector<std::int32_t>& ends) {
    return std::ranges::find(ends, running.last_token) != ends.end();
  };
  if (among(options_.end_tokens) || among(running.request.stops)) {
    running.out.finish = FinishReason::End;
    return true;
  }
  running.out.finish = FinishReason::Length;
  return running.request.prefix.size() + running.out.tokens.size() >= running.limit;
}

std::vector<Generation> TorchEngine::interrupt() {
  std::vector<Generation> all = std::exchange(settled_, {});
  for (Sequence& r : running_) {
    r.out.finish = FinishReason::Interrupted;
    free_slots_.push_back(r.slot);
    all.push_back(std::move(r.out));
  }
  running_.clear();
  for (const GenerationRequest& request : queue_) {
    Generation waiting;
    waiting.id = request.id;
    waiting.finish = FinishReason::Interrupted;
    all.push_back(std::move(waiting));
  }
  queue_.clear();
  return all;
}

std::vector<Generation> TorchEngine::withdraw(std::span<const ResponseId> ids) {
  const std::unordered_set<ResponseId> leaving(ids.begin(), ids.end());
  std::vector<Generation> out;
  for (Sequence& r : running_) {
    if (!leaving.contains(r.out.id))
      continue;
    Generation& part = out.emplace_back(r.out);
    part.finish = FinishReason::Interrupted;
  }
  for (const GenerationRequest& request : queue_) {
    if (!leaving.contains(request.id))
      continue;
    Generation& waiting = out.emplace_back();
    waiting.id = request.id;
    waiting.finish = FinishReason::Interrupted;
  }
  // The next step reports finished responses.
  std::vector<ResponseId> taken;
  for (const Generation& g : out)
    taken.push_back(g.id);
  cancel(taken);
  return out;
}

void TorchEngine::cancel(std::span<const ResponseId> ids) {
  const std::unordered_set<ResponseId> gone(ids.begin(), ids.end());
  std::erase_if(queue_, [&](const GenerationRequest& r) { return gone.contains(r.id); });
  std::erase_if(settled_, [&](const Generation& g) { return gone.contains(g.id); });
  std::erase_if(running_, [&](const Sequence& r) {
    if (!gone.contains(r.out.id))
      return false;
    free_slots_.push_back(r.slot);
    return true;
  });
}

Status TorchEngine::stage(PolicyVersion version, std::span<const std::byte> weights) {
  return versions_.stage(version, weights);
}

Status TorchEngine::commit(PolicyVersion version) {
  TEMPER_TRY_STATUS(versions_.commit(version));
  for (Sequence& r : running_)
    r.outdated = options_.on_new_weights == OnNewWeights::Recompute;
  return {};
}

bool TorchEngine::reset_for_resume() {
  static_cast<void>(interrupt());
  versions_.reset();
  return true;
}

Status TorchEngine::free_kv() {
  TEMPER_TRY_STATUS(require_idle(load(), "free_kv"));
  decoder_.free_cache();
  return {};
}

Status TorchEngine::allocate_kv() {
  TEMPER_TRY_STATUS(require_idle(load(), "allocate_kv"));
  decoder_.allocate_cache();
  return {};
}

Status TorchEngine::free_weights() {
  TEMPER_TRY_STATUS(require_idle(load(), "free_weights"));
  versions_.free();
  return {};
}

EngineMemory TorchEngine::memory() const {
  EngineMemory memory;
  memory.weights = versions_.bytes();
  memory.kv = decoder_.cache_bytes();
  return memory;
}

}  // namespace

Result<std::unique_ptr<Engine>> make_torch_engine(const TorchEngineOptions& options) {
  TEMPER_TRY(const actors::Layout layout, actors::Layout::make(options.model, options.vocabulary));
  if (options.concurrency < 1)
    return invalid_input(fmt::format("concurrency: must be >= 1, found {}", options.concurrency));
  if (options.sampling.max_new_tokens >= options.model.context) {
    return invalid_input(
        fmt::format("sampling.max_new_tokens: {} leaves no space for a prompt in a context "
                    "of {}",
                    options.sampling.max_new_tokens.count(),
                    options.model.context.count()));
  }
  TEMPER_TRY(PolicyVersions versions, PolicyVersions::make(layout, options.base));
  return std::unique_ptr<Engine>(new TorchEngine(options, layout, std::move(versions)));
}

}  // namespace temper::rollout
