// Which layers and modules each pipeline stage has.
//
// Every stage has as many layers, but for the last, which has the head: where layers do not divide
// it gives up as many as are missing, down to one, and stages before it one each. LayerBalance has
// other ways. Requires: a layout of at most as many stages as the model has layers. Pure functions.
#pragma once

#include "sim_hw/layout/layout.hpp"

#include <cstdint>

namespace temper::sim_hw {

/// Layers of pipeline stage `stage`, from 0.
std::int64_t stage_layers(const ModelSpec& model, const Layout& layout, std::int64_t stage);
/// What a stage has besides layers.
struct StageModules {
  std::int64_t mtp = 0;
  std::int64_t heads = 0;  ///< Passes through the head: of the output and of each MTP module.
};
StageModules stage_modules(const ModelSpec& model, const Layout& layout, std::int64_t stage);
/// Of all stages before it.
std::int64_t layers_before(const ModelSpec& model, const Layout& layout, std::int64_t stage);

}  // namespace temper::sim_hw
