// Low-rank adapters (LoRA) of a model, by dimensions: which linear layers have one, and their size.
// A layer with the weight [out, in] has A [rank, in] and B [out, rank] beside it.
//
// Layers are named as in Hugging Face models, because peft matches these names: a target selects
// every layer with its name. `gate_proj`, `up_proj` and `down_proj` are in dense MLPs, in the
// shared experts (one MLP of their joint width), and in every routed expert. Latent attention has
// `q_a_proj`, `q_b_proj`, `kv_a_proj_with_mqa` and `kv_b_proj` in place of `q_proj`, `k_proj` and
// `v_proj`. MTP modules are one block each. Embedding, head, norms, routers and the projection in
// front of an MTP module have no adapter.
//
// Tensor parallelism splits A or B as it splits the weight, and every device holds the other one
// whole: A of a layer whose outputs are split (queries, keys, values, gate, up), B of one whose
// inputs are split (attention output, down). The down projections of latent attention are whole on
// every device (sim_hw/memory/weights.hpp), and so are their adapters. Values only.
#pragma once

#include "core/describe.hpp"
#include "core/result.hpp"
#include "sim_hw/model/model_spec.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace temper::sim_hw {

enum class AdapterTarget {
  Query,
  Key,
  Value,
  QueryDown,
  QueryUp,
  KeyValueDown,
  KeyValueUp,
  Output,
  Gate,
  Up,
  Down,
};

struct Adapter {
  std::int64_t rank = 0;
  std::uint32_t targets = 0;  ///< One bit for each AdapterTarget.

  bool has(AdapterTarget target) const {
    return (targets >> static_cast<std::uint32_t>(target) & 1) != 0;
  }
  bool operator==(const Adapter&) const = default;
};
void describe(auto& v, Adapter& c) {
  v.field(1, "rank", c.rank);
  v.field(2, "targets", c.targets);
}

/// An adapter with these targets. Error InvalidInput: no target, a target that is repeated or that
/// the model does not have, or a rank that is not between 1 and the smaller side of every target.
/// The message starts with "rank: " or "targets: ".
Result<Adapter> make_adapter(const ModelSpec& model,
                             std::int64_t rank,
                             std::span<const std::string> targets);

/// As above, with all targets that the model has.
Result<Adapter> adapter_of_every_layer(const ModelSpec& model, std::int64_t rank);

/// An adapter of one linear layer, on one device.
struct LowRank {
  AdapterTarget target = AdapterTarget::Query;
  double in = 0, out = 0;
  /// Of `in` and `out`, what belongs to matrices that every tensor-parallel device holds whole.
  double whole = 0;
};

/// The adapters of one kind of block, or of one expert.
class LowRankLayers {
 public:
  void add(const LowRank& layer) { layers_[count_++] = layer; }
  std::span<const LowRank> all() const { return {layers_.data(), count_}; }
  /// Sum of both sides of each layer: parameters = rank * width().
  double width() const;
  /// The same of matrices that every tensor-parallel device holds whole.
  double whole() const;

 private:
  std::array<LowRank, 5> layers_{};
  std::size_t count_ = 0;
};

/// The adapters of a model on one device.
struct AdapterShapes {
  double rank = 0;
  LowRankLayers attention, dense, shared;
  LowRankLayers expert;  ///< Of one routed expert.
};

/// Devices over which a layout splits the linear layers of each kind.
struct AdapterCuts {
  double tp = 1;         ///< Attention, and the MLP of dense layers.
  double shared_tp = 1;  ///< Shared experts.
  double expert_tp = 1;  ///< One routed expert.
};
AdapterShapes adapter_shapes(const ModelSpec& model, const Adapter& adapter, AdapterCuts cuts = {});

/// Parameters of the adapter in the whole model, MTP modules included.
std::int64_t adapter_parameters(const ModelSpec& model, const Adapter& adapter);
/// Those that multiply a token: of `top_k` routed experts, without MTP modules.
std::int64_t active_adapter_parameters(const ModelSpec& model, const Adapter& adapter);

}  // namespace temper::sim_hw

template <>
struct temper::EnumNames<temper::sim_hw::AdapterTarget> {
  using E = temper::sim_hw::AdapterTarget;
  static constexpr std::array<std::pair<E, std::string_view>, 11> value{
      {{E::Query, "q_proj"},
       {E::Key, "k_proj"},
       {E::Value, "v_proj"},
       {E::QueryDown, "q_a_proj"},
       {E::QueryUp, "q_b_proj"},
       {E::KeyValueDown, "kv_a_proj_with_mqa"},
       {E::KeyValueUp, "kv_b_proj"},
       {E::Output, "o_proj"},
       {E::Gate, "gate_proj"},
       {E::Up, "up_proj"},
       {E::Down, "down_proj"}}};
};
