// Functions that add the ablation rows by theme, and their shared helpers. Private to this folder.
#pragma once

#include "core/text/numbers.hpp"
#include "sim_hw/ablation/ablation.hpp"
#include "sim_hw/ablation/published_gains.hpp"
#include "sim_hw/ablation/systems.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace temper::sim_hw {

inline constexpr std::string_view kPanguConditions =
    "718B, 6144 devices of Atlas A2, TP8 PP16 VPP2 EP32, 64 micro-batches of 2 x 8192 tokens, full "
    "recompute";
inline constexpr std::string_view kDeepSeekConditions =
    "671B, 512 devices of Atlas A2, TP4 PP16 VPP2 EP16, 32 micro-batches of 1 x 4096 tokens, full "
    "recompute";

struct AblationSystems {
  MoeSystem pangu;
  MoeSystem deepseek;
  TraceInput recorded;  ///< Recorded traces, for `pangu`.
  PublishedGains published;
};

template <class F>
MoeSystem with(MoeSystem system, const F& change) {
  change(system);
  return system;
}
/// Replaces full recompute with a choice per tensor that fits the memory.
MoeSystem with_chosen_activations(MoeSystem system);

std::string rate_text(double tokens_per_second);
/// Compares two rates.
AblationRow rate_row(std::string mechanism, std::string_view conditions, double off, double on);
/// Compares the throughput without and with a change.
AblationRow throughput_row(std::string mechanism,
                           std::string_view conditions,
                           const MoeSystem& off,
                           const MoeSystem& on,
                           std::optional<double> published);

using AblationRows = std::vector<AblationRow>;
void add_exchange_rows(const AblationSystems& systems, AblationRows& rows);
void add_schedule_rows(const AblationSystems& systems, AblationRows& rows);
void add_balance_rows(const AblationSystems& systems, AblationRows& rows);
void add_activation_rows(const AblationSystems& systems, AblationRows& rows);
void add_host_rows(const AblationSystems& systems, AblationRows& rows);
void add_operator_rows(const AblationSystems& systems, AblationRows& rows);
void add_total_rows(const AblationSystems& systems, AblationRows& rows);

}  // namespace temper::sim_hw
