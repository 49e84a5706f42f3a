#include "actors/model_folder/adapter_layout.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <span>

namespace temper::actors {
namespace {

constexpr std::span<const std::string_view> kTargets = LoraConfig::kTargets;
constexpr std::string_view kWeight = ".weight";

/// "q_proj" of "model.layers.0.self_attn.q_proj.weight"; empty for other tensors.
std::string_view target_of(std::string_view stored) {
  if (!stored.ends_with(kWeight))
    return {};
  stored.remove_suffix(kWeight.size());
  stored.remove_prefix(stored.rfind('.') + 1);
  const auto found = std::ranges::find(kTargets, stored);
  return found == kTargets.end() ? std::string_view() : *found;
}

Status check_targets(const LoraConfig& lora) {
  const std::string known = fmt::format("{}", fmt::join(kTargets, ", "));
  if (lora.targets.empty()) {
    return invalid_input(
        fmt::format("targets: expected at least one of {}, found an empty list; remove model.lora "
                    "to train all weights",
                    known));
  }
  std::set<std::string_view> seen;
  for (const std::string& target : lora.targets) {
    if (target == "lm_head" || target == "embed_tokens") {
      return invalid_input(
          fmt::format("targets: {} can have no adapter, because the head and the embedding stay "
                      "frozen (tied ones share their weights); expected {}",
                      target,
                      known));
    }
    if (std::ranges::find(kTargets, target) == kTargets.end())
      return invalid_input(fmt::format("targets: expected {}, found \"{}\"", known, target));
    if (!seen.insert(target).second)
      return invalid_input(fmt::format("targets: {} is repeated; remove one", target));
  }
  return {};
}

}  // namespace

Result<AdapterLayout> AdapterLayout::make(const Layout& base, const LoraConfig& lora) {
  TEMPER_TRY_STATUS(check_targets(lora));
  AdapterLayout layout(lora);
  std::size_t tensor = 0;
  for (const TensorSpec& stored : base.stored()) {
    while (tensor + 1 < base.tensors().size() && stored.offset >= base.tensors()[tensor + 1].offset)
      ++tensor;
    const std::string_view name = target_of(stored.name);
    if (name.empty() || std::ranges::find(lora.targets, name) == lora.targets.end())
      continue;
    AdapterTarget target{.tensor = tensor, .out = stored.shape[0], .in = stored.shape[1]};
    target.row = (stored.offset - base.tensors()[tensor].offset) / target.in;
    if (lora.rank > std::min(target.out, target.in)) {
      return invalid_input(
          fmt::format("rank: must be at most {}, the smaller side of {} ({} x {}), found {}; lower "
                      "the rank or remove the target",
                      std::min(target.out, target.in),
                      name,
                      target.out,
                      target.in,
                      lora.rank));
    }
    layout.add(target,
               std::string_view(stored.name).substr(0, stored.name.size() - kWeight.size()));
  }
  return layout;
}

void AdapterLayout::add(const AdapterTarget& target, std::string_view layer) {
  constexpr std::int64_t kLine = 16;  // A cache line.
  AdapterTarget& added = targets_.emplace_back(target);
  const auto place = [&](std::string_view matrix, std::int64_t rows, std::int64_t columns) {
    const std::int64_t at = size_;
    tensors_.push_back(
        {fmt::format("base_model.model.{}.{}.weight", layer, matrix), {rows, columns}, at});
    size_ = (at + rows * columns + kLine - 1) / kLine * kLine;
    return at;
  };
  added.a = place("lora_A", lora_.rank, target.in);
  added.b = place("lora_B", target.out, lora_.rank);
}

std::span<const AdapterTarget> AdapterLayout::targets_in(std::size_t tensor) const {
  const auto begin = std::ranges::lower_bound(targets_, tensor, {}, &AdapterTarget::tensor);
  const auto end = std::ranges::upper_bound(targets_, tensor, {}, &AdapterTarget::tensor);
  return {begin, end};
}

std::int64_t AdapterLayout::parameters() const {
  std::int64_t sum = 0;
  for (const TensorSpec& t : tensors_)
    sum += t.elements();
  return sum;
}

void merge_adapter(const AdapterLayout& adapter,
                   std::span<const float> flat,
                   const Layout& base,
                   std::span<float> weights) {
  const auto scale = static_cast<float>(adapter.lora().scale());
  const std::int64_t rank = adapter.lora().rank;
  for (const AdapterTarget& t : adapter.targets()) {
    for (std::int64_t o = 0; o < t.out; ++o) {
      float* row = weights.data() + base.tensors()[t.tensor].offset + (t.row + o) * t.in;
      for (std::int64_t r = 0; r < rank; ++r) {
        const float factor = scale * flat[static_cast<std::size_t>(t.b + o * rank + r)];
        const float* a = flat.data() + t.a + r * t.in;
        for (std::int64_t i = 0; i < t.in; ++i)
          row[i] += factor * a[i];
      }
    }
  }
}

}  // namespace temper::actors
