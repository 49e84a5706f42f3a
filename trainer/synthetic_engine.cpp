#include "trainer/synthetic_engine.hpp"

#include "core/files.hpp"
#include "core/hash.hpp"
#include "core/json_document.hpp"
#include "core/pass_time.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

namespace temper::trainer {

namespace {

constexpr const char* kFile = "synthetic.json";

}  // namespace

Result<UpdateMetrics> SyntheticEngine::update(std::span<const TrainSample> batch) {
  if (batch.empty())
    return invalid_input("step: the batch is empty");
  if (offloaded_)
    return Error{ErrorCode::Unavailable, "step: the optimizer is offloaded"};
  const Time until = clock_.now() + step_time_;
  UpdateMetrics metrics;
  for (const TrainSample& sample : batch) {
    metrics.tokens +=
        Tokens(static_cast<std::int64_t>(sample.prompt.size() + sample.response.size()));
    metrics.reward_mean += sample.reward / static_cast<double>(batch.size());
  }
  metrics.micro_batches = 1;
  metrics.ratio_mean = 1;
  ++updates_;
  pass_time(clock_, until);
  return metrics;
}

Status SyntheticEngine::publish(const ImageWriter& write) const {
  std::string image = fmt::format("synthetic weights after {} updates", updates_);
  // All parts of it differ, from each other and from those of other versions.
  image.reserve(static_cast<std::size_t>(least_.count()));
  for (std::uint64_t word = updates_; std::cmp_less(image.size(), least_.count()); ++word) {
    const std::uint64_t bytes = hash64(std::as_bytes(std::span(&word, 1)));
    const auto left = static_cast<std::size_t>(least_.count()) - image.size();
    image.append(reinterpret_cast<const char*>(&bytes), std::min(left, sizeof bytes));
  }
  return write(std::as_bytes(std::span(image)));
}

Status SyntheticEngine::save(const std::filesystem::path& folder) const {
  return write_file_atomically(folder / kFile, fmt::format("{{\"updates\": {}}}\n", updates_));
}

Status SyntheticEngine::load(const std::filesystem::path& folder) {
  TEMPER_TRY(const std::string text, read_file(folder / kFile));
  const auto state = parse_json(text);
  if (!state.is_object() || !state.contains("updates") || !state["updates"].is_number_unsigned())
    return corrupt((folder / kFile).string() + " lacks the number `updates`");
  updates_ = state["updates"].get<std::uint64_t>();
  return {};
}

Status SyntheticEngine::offload() {
  memory_.host += std::exchange(memory_.optimizer, Bytes(0));
  offloaded_ = true;
  return {};
}

Status SyntheticEngine::onload() {
  memory_.optimizer += std::exchange(memory_.host, Bytes(0));
  offloaded_ = false;
  return {};
}

}  // namespace temper::trainer
