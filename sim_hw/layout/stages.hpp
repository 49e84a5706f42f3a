// The layers and modules of each pipeline stage.
//
// By default every stage has the same number of layers except the last, which has the head. If
// layers do not divide, the last stage gives up the missing ones, down to one layer, then the
// stages before it one each. LayerBalance has the other rules. Requires: a layout with at most as
// many stages as the model has layers. Pure functions.
#pragma once

#include "sim_hw/layout/layout.hpp"

#include <cstdint>

namespace temper::sim_hw {

/// Layers of pipeline stage `stage`, counted from 0.
std::int64_t stage_layers(const ModelSpec& model, const Layout& layout, std::int64_t stage);
/// Modules of a stage besides its layers.
struct StageModules {
  std::int64_t mtp = 0;
  std::int64_t heads = 0;  ///< Passes through a head: the output's and each MTP module's.
};
StageModules stage_modules(const ModelSpec& model, const Layout& layout, std::int64_t stage);
/// Layers of all earlier stages.
std::int64_t layers_before(const ModelSpec& model, const Layout& layout, std::int64_t stage);

}  // namespace temper::sim_hw
