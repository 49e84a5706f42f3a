#include "cli/laboratory/laboratory.hpp"

#include <array>

namespace temper::cli {
namespace {

constexpr std::array<Command, 12> kStudyCommands{{
    {"cost", "Estimate the cost of one operation, training step or phase", nullptr, "estimate"},
    {"plan", "Find the best parallel layouts for a pipeline or a model"},
    {"tune", "Find the best placement, layouts, engines and staleness bound"},
    {"sweep", "Run a grid of configurations, simulated or real: table, CSV, plots"},
    {"ladder", "Compare deployments on the same simulated cards, each one tuned"},
    {"faults", "Estimate the loss to hardware failures by checkpoint interval and spare hosts"},
    {"measure", "Measure this machine with a pipeline's engines, for `forecast` and `tune`"},
    {"forecast",
     "Predict runs on this machine from its measurements; --check also runs them",
     nullptr,
     "predict"},
    {"whatif", "Predict a recorded run under other settings"},
    {"validate", "Compare predictions with measured CSV files: error per row and per kind"},
    {"calibrate", "Fit the constants of a hardware description to measurements"},
    {"ablation", "Predict the gain of each MoE training mechanism beside its published gain"},
}};

}  // namespace

std::span<const Command> study_commands() {
  return kStudyCommands;
}

}  // namespace temper::cli
