// What an RL framework adds to the copies of weights on the links, read from
// configs/frameworks/*.yaml.
//
// Assumptions. The stages of a publication run once per publication, one after the other and after
// the copies; those of a role switch once for each state that moves weights or optimizer states
// between a device and its host. Nothing overlaps.
// Equation. t = copies + sum over stages of one of: a fixed time; time x tensors of the version;
// bytes of the version / bandwidth; bytes on the busiest device / bandwidth.
// Constants: the description's; its `fits` name the published rows. Range: the sizes of these rows.
#pragma once

#include "core/describe.hpp"
#include "core/result.hpp"
#include "sim_hw/hardware/constants.hpp"
#include "sim_hw/model/adapter.hpp"
#include "sim_hw/model/model_spec.hpp"

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace temper::sim_hw {

/// What a stage may cost, so that no sum of stages exceeds a Duration.
inline constexpr Duration kMostTime = std::chrono::hours(24);
inline constexpr Duration kMostPerTensor = std::chrono::seconds(10);
inline constexpr BytesPerSecond kLeastBandwidth{1e6};

/// Has exactly one of the four costs.
struct FrameworkStage {
  std::string stage;
  std::optional<Duration> time;
  std::optional<Duration> per_tensor;
  std::optional<BytesPerSecond> version_bandwidth;
  std::optional<BytesPerSecond> device_bandwidth;
};
void describe(auto& v, FrameworkStage& c) {
  v.field(1, "stage", c.stage, {.doc = "Name: gather, cast, load, pin, allocate, capture."});
  v.field(2, "time", c.time, {.doc = "Fixed time.", .min = Duration(1), .max = kMostTime});
  v.field(3,
          "per_tensor",
          c.per_tensor,
          {.doc = "Time per tensor.", .min = Duration(1), .max = kMostPerTensor});
  v.field(4,
          "version_bandwidth",
          c.version_bandwidth,
          {.doc = "Bandwidth for all bytes of a version.", .min = kLeastBandwidth});
  v.field(5,
          "device_bandwidth",
          c.device_bandwidth,
          {.doc = "Bandwidth for the bytes of one device.", .min = kLeastBandwidth});
}

/// Without stages, copies take the time of the links.
struct FrameworkSpec {
  std::string name;
  std::string source;
  std::vector<FrameworkStage> publication;
  std::vector<FrameworkStage> role_switch;
  std::vector<FitRecord> fits;
  std::vector<std::string> aliases;
};
void describe(auto& v, FrameworkSpec& c) {
  v.field(1, "name", c.name, {.doc = "Name in `simulation.framework`."});
  v.field(2, "source", c.source, {.doc = "Source of the numbers."});
  v.field(3, "publication", c.publication, {.doc = "Stages of a publication."});
  v.field(4, "role_switch", c.role_switch, {.doc = "Stages of a move to or from the host."});
  v.field(5, "fits", c.fits, {.doc = "Sources of the fitted constants."});
  v.field(6, "aliases", c.aliases, {.doc = "Other names."});
}

/// The framework whose copies take the time of the links.
inline constexpr std::string_view kIdealFramework = "ideal";

struct MovedWeights {
  double tensors = 0;        ///< Of the version.
  double version_bytes = 0;  ///< On all devices of one engine, each weight once.
  double device_bytes = 0;   ///< On the device with most.
};
double stage_seconds(const FrameworkStage& stage, const MovedWeights& moved);
/// "1.9e4 tensors x 3.6e-05 s"
std::string equation(const FrameworkStage& stage, const MovedWeights& moved);
double stages_seconds(std::span<const FrameworkStage> stages, const MovedWeights& moved);

/// Tensors of a checkpoint without MTP modules: three for each routed expert, and kBlockTensors for
/// the rest of a layer.
double weight_tensors(const ModelSpec& model);
inline constexpr double kBlockTensors = 12;
/// The same of its adapter: two for each layer that has one.
double weight_tensors(const ModelSpec& model, const Adapter& adapter);

/// Error InvalidInput: a stage without a name, with none or several costs, or with a cost that its
/// list cannot have; names the line.
Result<FrameworkSpec> read_framework(const std::filesystem::path& file);

}  // namespace temper::sim_hw
