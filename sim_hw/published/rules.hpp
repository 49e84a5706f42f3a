// Rules of one area each; apply_rules() tries them in order. Values only.
#pragma once

#include "sim_hw/published/published.hpp"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace temper::sim_hw {

using RuleOutcome = std::optional<RuleResult>;

/// Training as frameworks report it: pretrain, fine-tuning, the trainer of an RL system.
RuleOutcome training_run_rule(const PublishedRow& p, const Conditions& c, const std::string& model);
/// GPT-3 175B on Ampere and Hopper, and Megatron-Core on GB200, without a stated layout.
RuleOutcome open_layout_rule(const PublishedRow& p, const Conditions& c, const std::string& model);
/// Decode and prefill of an inference engine.
RuleOutcome serving_rule(const PublishedRow& p, const Conditions& c, const std::string& model);
/// RL steps whose lengths have a spread.
RuleOutcome rl_step_rule(const PublishedRow& p, const Conditions& c, const std::string& model);

RuleResult published_request(std::string kind, std::string params, std::string metric);

/// The number right before `unit`: 16 of "32 dies, 16 cards" for " cards".
std::optional<double> number_before(std::string_view text, std::string_view unit);

/// Dies of the row's cards; 1 without cards.
double published_devices(const PublishedRow& p);

/// Name of a metric in publications and in a kind.
using MetricName = std::pair<std::string_view, std::string_view>;
template <std::size_t N>
std::string_view metric_of(const std::array<MetricName, N>& names, std::string_view published) {
  for (const auto& [from, to] : names) {
    if (from == published)
      return to;
  }
  return {};
}

}  // namespace temper::sim_hw
