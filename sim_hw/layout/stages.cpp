#include "sim_hw/layout/stages.hpp"

#include "sim_hw/model/flops.hpp"
#include "sim_hw/model/numbers.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace temper::sim_hw {
namespace {

/// Layers of the last two stages if modules count as layers; the other stages share the rest
/// evenly.
struct CountedSplit {
  std::int64_t before_last = 0;  ///< 0: only the last stage has modules.
  std::int64_t last = 0;
  std::int64_t others = 0;  ///< Number of stages that share the rest.
};

bool modules_apart(const ModelSpec& model, const Layout& layout) {
  return layout.vpp > 1 && layout.pp > 2 && model.mtp_layers > 0;
}

/// Whole layers that fit beside `modules` layers' worth of work under `limit`.
std::int64_t room(double limit, double modules) {
  return std::max<std::int64_t>(0, static_cast<std::int64_t>(std::floor(limit - modules + 1e-9)));
}

/// Cost of modules in units of one layer.
struct ModuleWeights {
  double before_last = 0;
  double last = 0;
  bool apart = false;
};

ModuleWeights module_weights(const ModelSpec& model, const Layout& layout) {
  const ModelFlops flops(model);
  const double head = flops.per_logit * as_double(model.layers) / flops.per_token;
  const double mtp = as_double(model.mtp_layers) * (1 + head);
  if (modules_apart(model, layout))
    return {head, mtp, true};
  return {0, mtp + head, false};
}

/// The smallest limit for layers and modules of a stage under which all layers fit. Some stage is
/// full at this limit, so it is a whole number of layers, alone or beside a stage's modules.
CountedSplit split_counted(const ModelSpec& model, const Layout& layout) {
  const ModuleWeights modules = module_weights(model, layout);
  const std::int64_t others = layout.pp - (modules.apart ? 2 : 1);
  const auto split = [&](double limit) {
    return CountedSplit{
        modules.apart ? room(limit, modules.before_last) : 0, room(limit, modules.last), others};
  };
  const auto fraction = [](double x) { return x - std::floor(x); };
  std::array<double, 3> steps{0, fraction(modules.before_last), fraction(modules.last)};
  std::ranges::sort(steps);
  for (double whole = std::floor(as_double(model.layers) / as_double(layout.pp));; ++whole) {
    for (const double step : steps) {
      CountedSplit found = split(whole + step);
      if (others * room(whole + step, 0) + found.before_last + found.last < model.layers)
        continue;
      found.before_last = std::min(found.before_last, model.layers - others);
      found.last = std::min(found.last, model.layers - others - found.before_last);
      return found;  // Every other stage keeps at least one layer.
    }
  }
}

std::int64_t counted_before(const ModelSpec& model, const Layout& layout, std::int64_t stage) {
  const CountedSplit split = split_counted(model, layout);
  const std::int64_t rest = model.layers - split.before_last - split.last;
  if (stage > split.others)
    return model.layers - split.last;
  if (split.others == 0)
    return 0;
  return stage * (rest / split.others) + std::min(stage, rest % split.others);
}

}  // namespace

std::int64_t stage_layers(const ModelSpec& model, const Layout& layout, std::int64_t stage) {
  return layers_before(model, layout, stage + 1) - layers_before(model, layout, stage);
}

StageModules stage_modules(const ModelSpec& model, const Layout& layout, std::int64_t stage) {
  const bool apart = layout.layer_balance == LayerBalance::Counted && modules_apart(model, layout);
  if (stage + 1 == layout.pp)
    return {model.mtp_layers, model.mtp_layers + (apart ? 0 : 1)};
  return {0, apart && stage + 2 == layout.pp ? 1 : 0};
}

std::int64_t layers_before(const ModelSpec& model, const Layout& layout, std::int64_t stage) {
  if (stage >= layout.pp)
    return model.layers;
  if (layout.layer_balance == LayerBalance::Counted)
    return counted_before(model, layout, stage);
  if (layout.layer_balance == LayerBalance::Even)
    return stage * (model.layers / layout.pp) + std::min(stage, model.layers % layout.pp);
  const std::int64_t most = (model.layers + layout.pp - 1) / layout.pp;
  const std::int64_t missing = layout.pp * most - model.layers;
  const std::int64_t one_less = missing - std::min(missing, most - 1);
  return stage * most - std::max<std::int64_t>(0, stage - (layout.pp - 1 - one_less));
}

}  // namespace temper::sim_hw
