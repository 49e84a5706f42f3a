#include "sim_hw/framework/framework.hpp"

#include "core/yaml_file.hpp"
#include "sim_hw/model/numbers.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace temper::sim_hw {
namespace {

constexpr double kExpertTensors = 3;

/// What is wrong with a stage; empty if nothing.
std::string problem(const FrameworkStage& s, bool publication) {
  if (s.stage.empty())
    return "expected a name (`stage: load`), found none";
  constexpr std::array<std::string_view, 4> kCosts{
      "time", "per_tensor", "version_bandwidth", "device_bandwidth"};
  const std::array<bool, 4> has{s.time.has_value(),
                                s.per_tensor.has_value(),
                                s.version_bandwidth.has_value(),
                                s.device_bandwidth.has_value()};
  const int count = has[0] + has[1] + has[2] + has[3];
  std::string found;
  for (std::size_t i = 0; i < kCosts.size(); ++i) {
    if (has[i])
      found += fmt::format("{}`{}`", found.empty() ? "" : " and ", kCosts[i]);
  }
  if (count == 0)
    found = "none; give it one";
  else if (count > 1)
    found += "; divide it into several stages";
  const bool one = count == 1;
  if (publication) {
    return one ? ""
               : "expected one of `time`, `per_tensor`, `version_bandwidth` and "
                 "`device_bandwidth`, found " +
                     found;
  }
  return one && (s.time || s.device_bandwidth)
             ? ""
             : "expected one of `time` and `device_bandwidth`, since each device moves its own "
               "share, found " +
                   found;
}

}  // namespace

double stage_seconds(const FrameworkStage& s, const MovedWeights& moved) {
  if (s.time)
    return seconds(*s.time);
  if (s.per_tensor)
    return seconds(*s.per_tensor) * moved.tensors;
  if (s.version_bandwidth)
    return moved.version_bytes / s.version_bandwidth->count();
  return moved.device_bytes / s.device_bandwidth->count();
}

std::string equation(const FrameworkStage& s, const MovedWeights& moved) {
  if (s.time)
    return "fixed";
  if (s.per_tensor)
    return fmt::format("{:.6g} tensors x {:.6g} s", moved.tensors, seconds(*s.per_tensor));
  if (s.version_bandwidth)
    return fmt::format(
        "{:.6g} B of the version / {:.6g} B/s", moved.version_bytes, s.version_bandwidth->count());
  return fmt::format(
      "{:.6g} B of a device / {:.6g} B/s", moved.device_bytes, s.device_bandwidth->count());
}

double stages_seconds(std::span<const FrameworkStage> stages, const MovedWeights& moved) {
  double sum = 0;
  for (const FrameworkStage& stage : stages)
    sum += stage_seconds(stage, moved);
  return sum;
}

double weight_tensors(const ModelSpec& model) {
  const double experts = model.moe ? as_double(model.moe_layers() * model.moe->experts) : 0;
  return as_double(model.layers) * kBlockTensors + experts * kExpertTensors;
}

double weight_tensors(const ModelSpec& model, const Adapter& adapter) {
  double attention = 0, mlp = 0;
  for (std::uint32_t target = 0; target <= static_cast<std::uint32_t>(AdapterTarget::Down);
       ++target) {
    if (adapter.has(static_cast<AdapterTarget>(target)))
      ++(target < static_cast<std::uint32_t>(AdapterTarget::Gate) ? attention : mlp);
  }
  // Dense layers have one MLP; expert layers one of the shared experts, and one per routed expert.
  double mlps = as_double(model.layers);
  if (model.moe) {
    const std::int64_t shared = model.moe->shared_experts > 0 ? 1 : 0;
    mlps = as_double(model.dense_layers() + model.moe_layers() * (model.moe->experts + shared));
  }
  return 2 * (attention * as_double(model.layers) + mlp * mlps);
}

Result<FrameworkSpec> read_framework(const std::filesystem::path& file) {
  TEMPER_TRY(const std::string text, read_file(file));
  YamlValue<FrameworkSpec> read = read_yaml<FrameworkSpec>(file.string(), text);
  const auto check = [&](std::string_view list, const std::vector<FrameworkStage>& stages) {
    for (std::size_t i = 0; i < stages.size(); ++i) {
      const std::string key = fmt::format("{}[{}]", list, i);
      if (const std::string what = problem(stages[i], list == "publication"); !what.empty())
        read.issues.push_back({read.place_of(key), key, what});
    }
  };
  if (read.issues.empty()) {
    check("publication", read.value.publication);
    check("role_switch", read.value.role_switch);
  }
  if (!read.issues.empty())
    return config_error(locate(read.document, std::move(read.issues)));
  return std::move(read.value);
}

}  // namespace temper::sim_hw
