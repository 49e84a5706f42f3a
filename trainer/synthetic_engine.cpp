#include "trainer/synthetic_engine.hpp"

#include "core/files.hpp"

#include <fmt/format.h>

#include <charconv>
#include <utility>

namespace temper::trainer {

Result<UpdateMetrics> SyntheticEngine::update(std::span<const TrainSample> batch) {
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
  while (clock_.now() < until) {
  }
  return metrics;
}

Result<std::string> SyntheticEngine::weights() const {
  return fmt::format("synthetic weights after {} updates", updates_);
}

Status SyntheticEngine::save(const std::filesystem::path& folder) const {
  return write_file_atomically(folder / "updates.txt", fmt::format("{}\n", updates_));
}

Status SyntheticEngine::load(const std::filesystem::path& folder) {
  TEMPER_TRY(const std::string text, read_file(folder / "updates.txt"));
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), updates_);
  if (error != std::errc{})
    return corrupt((folder / "updates.txt").string() + " holds no number");
  return {};
}

Status SyntheticEngine::offload() {
  memory_.host += std::exchange(memory_.optimizer, Bytes(0));
  return {};
}

Status SyntheticEngine::onload() {
  memory_.optimizer += std::exchange(memory_.host, Bytes(0));
  return {};
}

}  // namespace temper::trainer
