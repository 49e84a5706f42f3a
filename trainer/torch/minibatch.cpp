#include "trainer/torch/minibatch.hpp"

#include "core/random.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace temper::trainer {

std::vector<SampleIndices> split_minibatches(std::span<const TrainSample> batch,
                                             std::int32_t minibatches,
                                             std::uint64_t seed,
                                             std::uint64_t update) {
  std::map<GroupId, SampleIndices> by_group;
  for (std::size_t i = 0; i < batch.size(); ++i)
    by_group[batch[i].group].push_back(i);
  std::vector<const SampleIndices*> groups;
  for (const auto& [id, samples] : by_group)
    groups.push_back(&samples);
  Random random(seed, fmt::format("minibatches of update {}", update));
  for (std::size_t i = groups.size(); i > 1; --i)
    std::swap(groups[i - 1], groups[random.below(i)]);

  const std::size_t parts = std::min(static_cast<std::size_t>(minibatches), groups.size());
  std::vector<SampleIndices> result(parts);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    SampleIndices& part = result[g * parts / groups.size()];
    part.insert(part.end(), groups[g]->begin(), groups[g]->end());
  }
  return result;
}

std::vector<MicroBatch> pack_micro_batches(std::span<const TrainSample> batch,
                                           const SampleIndices& minibatch,
                                           std::int64_t rows) {
  std::vector<MicroBatch> result;
  const std::vector<std::int32_t>* prompt = nullptr;  // The last prompt of the last pack.
  for (const std::size_t i : minibatch) {
    const TrainSample& sample = batch[i];
    const std::int64_t of_response = actors::Pack::rows_of_response(sample.response);
    const bool shares = prompt != nullptr && *prompt == sample.prompt;
    const std::int64_t more =
        of_response + (shares ? 0 : actors::Pack::rows_of_prompt(sample.prompt));
    const bool full = !result.empty() && result.back().pack.rows() + more > rows;
    if (result.empty() || full)
      result.emplace_back();
    actors::Pack& pack = result.back().pack;
    if (!shares || pack.rows() == 0)
      pack.add_prompt(sample.prompt);
    prompt = &sample.prompt;
    pack.add_response(sample.response);
    pack.add_candidates(sample.top.ids);
    result.back().samples.push_back(i);
  }
  return result;
}

std::vector<double> of_trained_tokens(const TrainSample& sample, std::span<const float> per_token) {
  std::vector<double> out;
  out.reserve(per_token.size());
  for (std::size_t t = 0; t < per_token.size(); ++t) {
    if (sample.is_trained(t))
      out.push_back(static_cast<double>(per_token[t]));
  }
  return out;
}

std::vector<double> interpolated_proximal(const TrainSample& sample,
                                          std::span<const double> current,
                                          std::span<const double> behaviour) {
  std::vector<double> out;
  out.reserve(current.size());
  std::size_t place = 0;
  for (std::size_t t = 0; t < current.size(); ++t, ++place) {
    while (!sample.is_trained(place))
      ++place;
    const double age = sample.age(place);
    out.push_back(behaviour[t] + age / (age + 1) * (current[t] - behaviour[t]));
  }
  return out;
}

std::map<GroupId, std::size_t> responses_by_group(std::span<const TrainSample> samples) {
  std::map<GroupId, std::size_t> out;
  for (const TrainSample& s : samples)
    ++out[s.group];
  return out;
}

}  // namespace temper::trainer
