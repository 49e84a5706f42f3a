// Compares deployments: the result of each way to run RL post-training on the same simulated cards,
// when all are tuned with the same effort, for several batches and response length distributions.
// Published figures are printed with the results but enter no computation; nothing is fitted to
// them.
//
// A deployment is a staleness bound and one or more placements, among which `tune` searches with
// the same number of runs for every deployment (tune.hpp). A reference always has exclusive cards
// or is time-shared with the other roles.
//
// Every deployment, including the baselines, is tuned twice with the same effort: as configured,
// and with the optional mechanisms on that its placement allows: gradients during generation
// (stragglers.prepare) and, on time-shared cards, switching one by one.
//
// One step off in its classic form generates the next batch with the weights before the current
// update, during this update, and engines and trainer synchronize at every update. The scheduler
// has no such barrier. The deployment here is bound 1 on separate cards under the exact rule: an
// engine that finishes one batch starts the next, so it is no slower than the classic form.
#pragma once

#include "actors/simulation/length_config.hpp"
#include "study/search/tune.hpp"

#include <string>
#include <vector>

namespace temper::study {

struct Deployment {
  std::string id;
  std::string text;
  std::vector<orchestrator::PlacementMode> modes;
  std::int32_t bound = 0;
};
/// From simple to elaborate.
const std::vector<Deployment>& known_deployments();

/// Trained tokens/s of a deployment on this many cards, from secondary accounts of Pangu Ultra MoE;
/// lengths, batch and split are not published.
struct PublishedDeployment {
  std::string deployment;
  std::int32_t cards = 0;
  double tokens_per_s = 0;
};
const std::vector<PublishedDeployment>& published_deployments();

/// Lognormal response lengths, as in LengthConfig.
struct LengthSpread {
  double mean = 0;
  Tokens cap;
  double p99_over_median = 1;

  std::string text() const;  ///< "8000:32768:8"
};
/// Parses "mean:cap:p99/median". Errors: another format, or impossible lengths.
Result<LengthSpread> parse_spread(std::string_view text);
/// The default distributions.
const std::vector<LengthSpread>& default_spreads();

/// The fastest configuration found by a search.
struct TunedDeployment {
  orchestrator::PipelineConfig config;
  Figures figures;  ///< For a whole run.
  std::size_t runs = 0;
};

struct DeploymentCell {
  std::string deployment;
  LengthSpread spread;
  std::optional<TunedDeployment> tuned, with_mechanisms;
  std::string reason, mechanisms_reason;  ///< Why there is no result: nothing could run.
  std::int32_t groups = 0;                ///< Groups (prompts) of a batch.
};

struct DeploymentComparison {
  std::int32_t cards = 0;
  std::vector<Deployment> deployments;
  std::vector<LengthSpread> spreads;
  std::vector<std::int32_t> batches;     ///< In groups.
  std::int32_t responses_per_group = 0;  ///< From the configuration.
  /// By batch, then by distribution, then by deployment; fewer while the comparison runs.
  std::vector<DeploymentCell> cells;
  int runs = 0;       ///< Runs of each of a cell's two searches.
  std::string model;  ///< From the configuration.

  const Deployment& deployment_of(std::size_t cell) const {
    return deployments[cell % deployments.size()];
  }
};

struct DeploymentOptions {
  orchestrator::PipelineConfig config;
  std::vector<LengthSpread> spreads;
  std::vector<std::int32_t> batches;  ///< In groups; empty: the batch of the configuration.
  std::vector<Deployment> deployments;
  int runs = 24;  ///< Runs per search.
  int finalists = 4;
  std::uint64_t steady_updates = 20;  ///< Updates that the figures cover.
  int threads = 1;
  /// Called after each cell, so that finished cells can be saved. Error: stops there.
  std::function<Status(const DeploymentComparison& so_far)> on_cell;
};

/// Errors: the configuration is not for simulated hardware, its descriptions cannot be read, or an
/// error of on_cell().
Result<DeploymentComparison> compare_deployments(const DeploymentOptions& options);

}  // namespace temper::study
