#include "sim_hw/model/adapter.hpp"

#include "core/scalar_text.hpp"
#include "sim_hw/model/numbers.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace temper::sim_hw {
namespace {

/// How tensor parallelism splits a layer.
enum class Split { Nothing, Outputs, Inputs };

LowRank cut(AdapterTarget target, double in, double out, Split split, double ways) {
  switch (split) {
    case Split::Nothing:
      break;
    case Split::Outputs:
      return {target, in, out / ways, in};
    case Split::Inputs:
      return {target, in / ways, out, out};
  }
  return {target, in, out, in + out};
}

/// Adds the layers of an attention block, or of a MLP, that the adapter has.
class Builder {
 public:
  Builder(const ModelSpec& model, const Adapter& adapter) : model_(model), adapter_(adapter) {}

  LowRankLayers attention(double tp) {
    using enum AdapterTarget;
    const double hidden = as_double(model_.hidden);
    const double heads = as_double(model_.heads);
    const double value = as_double(model_.value_dim());
    if (model_.latent) {
      const double query_rank = as_double(model_.latent->q_lora_rank);
      const double rank = as_double(model_.latent->kv_lora_rank);
      const double rope = as_double(model_.latent->qk_rope_dim);
      const double nope = as_double(model_.latent->qk_nope_dim);
      add(cut(QueryDown, hidden, query_rank, Split::Nothing, tp));
      add(cut(QueryUp, query_rank, heads * (nope + rope), Split::Outputs, tp));
      add(cut(KeyValueDown, hidden, rank + rope, Split::Nothing, tp));
      add(cut(KeyValueUp, rank, heads * (nope + value), Split::Outputs, tp));
    } else {
      // Heads are replicated if there are fewer of them than devices.
      const double kv_heads = as_double(model_.kv_heads);
      const double kv_ways = std::min(tp, kv_heads);
      add(cut(Query, hidden, heads * as_double(model_.head_dim), Split::Outputs, tp));
      add(cut(Key, hidden, kv_heads * as_double(model_.head_dim), Split::Outputs, kv_ways));
      add(cut(Value, hidden, kv_heads * value, Split::Outputs, kv_ways));
    }
    add(cut(Output, heads * value, hidden, Split::Inputs, tp));
    return layers_;
  }

  LowRankLayers mlp(double ffn, double tp) {
    using enum AdapterTarget;
    const double hidden = as_double(model_.hidden);
    if (model_.activation == Activation::SwiGlu)
      add(cut(Gate, hidden, ffn, Split::Outputs, tp));
    add(cut(Up, hidden, ffn, Split::Outputs, tp));
    add(cut(Down, ffn, hidden, Split::Inputs, tp));
    return layers_;
  }

 private:
  void add(const LowRank& layer) {
    if (adapter_.has(layer.target))
      layers_.add(layer);
  }

  const ModelSpec& model_;
  const Adapter& adapter_;
  LowRankLayers layers_;
};

std::int64_t whole(double width) {
  return static_cast<std::int64_t>(width);
}

std::int64_t parameters(const ModelSpec& model,
                        const Adapter& adapter,
                        std::int64_t experts,
                        std::int64_t mtp) {
  const AdapterShapes shapes = adapter_shapes(model, adapter);
  const std::int64_t dense = whole(shapes.dense.width());
  const std::int64_t routed = whole(shapes.shared.width()) + experts * whole(shapes.expert.width());
  return adapter.rank *
         ((model.layers + mtp) * whole(shapes.attention.width()) + model.dense_layers() * dense +
          model.moe_layers() * routed + mtp * (model.moe ? routed : dense));
}

/// What a model without this target has instead; empty: it has the target.
std::string_view instead_of(AdapterTarget target, const ModelSpec& model) {
  using enum AdapterTarget;
  switch (target) {
    case Query:
      return model.latent ? "q_a_proj and q_b_proj" : "";
    case Key:
    case Value:
      return model.latent ? "kv_a_proj_with_mqa and kv_b_proj" : "";
    case QueryDown:
    case QueryUp:
      return model.latent ? "" : "q_proj";
    case KeyValueDown:
    case KeyValueUp:
      return model.latent ? "" : "k_proj and v_proj";
    case Gate:
      return model.activation == Activation::SwiGlu ? "" : "up_proj and down_proj";
    case Output:
    case Up:
    case Down:
      break;
  }
  return "";
}

std::vector<std::string> targets_of(const ModelSpec& model) {
  std::vector<std::string> out;
  for (const auto& [target, name] : EnumNames<AdapterTarget>::value) {
    if (instead_of(target, model).empty())
      out.emplace_back(name);
  }
  return out;
}

Status check_rank(const ModelSpec& model, const Adapter& adapter) {
  const AdapterShapes shapes = adapter_shapes(model, adapter);
  for (const LowRankLayers* layers :
       {&shapes.attention, &shapes.dense, &shapes.shared, &shapes.expert}) {
    for (const LowRank& l : layers->all()) {
      const std::int64_t most = whole(std::min(l.in, l.out));
      if (adapter.rank < 1 || adapter.rank > most) {
        return invalid_input(
            fmt::format("rank: must be at least 1 and at most {}, the smaller side of {} ({} x {}) "
                        "of {}; found {}",
                        most,
                        name_of(l.target),
                        l.out,
                        l.in,
                        model.name,
                        adapter.rank));
      }
    }
  }
  return {};
}

}  // namespace

double LowRankLayers::width() const {
  double sum = 0;
  for (const LowRank& l : all())
    sum += l.in + l.out;
  return sum;
}

double LowRankLayers::whole() const {
  double sum = 0;
  for (const LowRank& l : all())
    sum += l.whole;
  return sum;
}

Result<Adapter> make_adapter(const ModelSpec& model,
                             std::int64_t rank,
                             std::span<const std::string> targets) {
  const std::vector<std::string> known = targets_of(model);
  Adapter adapter{rank, 0};
  for (const std::string& name : targets) {
    const std::optional<AdapterTarget> target = from_name<AdapterTarget>(name);
    if (!target) {
      return invalid_input(
          fmt::format("targets: expected names of {}, found \"{}\"", quoted_list(known), name));
    }
    if (const std::string_view instead = instead_of(*target, model); !instead.empty()) {
      return invalid_input(fmt::format("targets: {} has no {}; nearest: {}. It has {}",
                                       model.name,
                                       name,
                                       instead,
                                       quoted_list(known)));
    }
    if (adapter.has(*target))
      return invalid_input(fmt::format("targets: {} is repeated; remove one", name));
    adapter.targets |= std::uint32_t{1} << static_cast<std::uint32_t>(*target);
  }
  if (targets.empty())
    return invalid_input(fmt::format("targets: expected at least one of {}", quoted_list(known)));
  TEMPER_TRY_STATUS(check_rank(model, adapter));
  return adapter;
}

Result<Adapter> adapter_of_every_layer(const ModelSpec& model, std::int64_t rank) {
  return make_adapter(model, rank, targets_of(model));
}

AdapterShapes adapter_shapes(const ModelSpec& model, const Adapter& adapter, AdapterCuts cuts) {
  AdapterShapes out;
  out.rank = as_double(adapter.rank);
  out.attention = Builder(model, adapter).attention(cuts.tp);
  if (model.dense_layers() > 0)
    out.dense = Builder(model, adapter).mlp(as_double(model.ffn), cuts.tp);
  if (model.moe) {
    const MixtureOfExperts& moe = *model.moe;
    if (moe.shared_experts > 0) {
      out.shared = Builder(model, adapter)
                       .mlp(as_double(moe.shared_experts * moe.shared_expert_ffn), cuts.shared_tp);
    }
    out.expert = Builder(model, adapter).mlp(as_double(moe.expert_ffn), cuts.expert_tp);
  }
  return out;
}

std::int64_t adapter_parameters(const ModelSpec& model, const Adapter& adapter) {
  return parameters(model, adapter, model.moe ? model.moe->experts : 0, model.mtp_layers);
}

std::int64_t active_adapter_parameters(const ModelSpec& model, const Adapter& adapter) {
  return parameters(model, adapter, model.moe ? model.moe->top_k : 0, 0);
}

}  // namespace temper::sim_hw
