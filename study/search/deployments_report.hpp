// Reports of a comparison of deployments: tables of deployments over batches and length
// distributions, and one flat row per cell for CSV and JSON.
#pragma once

#include "core/describe.hpp"
#include "study/search/deployments.hpp"

namespace temper::study {

/// One cell. Figures cover the steady stretch (study/simulate/simulate.hpp); 0 if nothing could
/// run, with the reason.
struct DeploymentRow {
  std::string deployment, lengths;
  std::int32_t bound = 0;
  double tokens_per_s = 0;  ///< Sustained.
  double trained_per_s = 0, generated_per_s = 0;
  double busy = 0, staleness_mean = 0, seconds_per_update = 0;
  double of_separate = 0;  ///< tokens_per_s relative to the first deployment.
  double published = 0;    ///< Tokens/s; 0: not published.
  std::string mode;
  std::int64_t engines = 0, engine_cards = 0, reference_cards = 0, trainer_cards = 0;
  std::int64_t rollout_tp = 0, rollout_ep = 0, concurrency = 0;
  double kv_share = 0;
  std::int64_t tp = 0, pp = 0, cp = 0, ep = 0, micro_batch_tokens = 0;
  std::int64_t runs = 0;
  /// Tuned with the optional mechanisms on (study/search/deployments.hpp): sustained tokens/s,
  /// busy share of cards, mean staleness, layout. 0 and empty if nothing could run.
  double mechanisms_per_s = 0, mechanisms_busy = 0, mechanisms_staleness = 0;
  std::string mechanisms_layout, mechanisms_reason;
  std::string reason;
  std::int32_t groups_per_update = 0, responses_per_group = 0;
  double of_colocated = 0;  ///< tokens_per_s relative to `colocated`; 0: not compared.
};

std::vector<DeploymentRow> deployment_rows(const DeploymentComparison& comparison);
/// All tables, with the published figures.
std::string deployments_text(const DeploymentComparison& comparison);
/// "separate: 4 x 32 tp2 + 32 reference + 224 trainer tp1 pp7 cp2 ep32 mb8K".
std::string layout_text(const DeploymentRow& row);
/// Cards of rollout + reference + trainer: "224 + 32 + 128", "352 shared + 32", "384 shared".
std::string split_text(const DeploymentRow& row);

void describe(auto& v, DeploymentRow& r) {
  v.field(1, "rung", r.deployment);
  v.field(2, "lengths", r.lengths);
  v.field(3, "bound", r.bound);
  v.field(4, "tokens_per_s", r.tokens_per_s);
  v.field(5, "trained_per_s", r.trained_per_s);
  v.field(6, "generated_per_s", r.generated_per_s);
  v.field(7, "busy", r.busy);
  v.field(8, "staleness_mean", r.staleness_mean);
  v.field(9, "seconds_per_update", r.seconds_per_update);
  v.field(10, "of_separate", r.of_separate);
  v.field(11, "published", r.published);
  v.field(12, "mode", r.mode);
  v.field(13, "engines", r.engines);
  v.field(14, "engine_cards", r.engine_cards);
  v.field(15, "reference_cards", r.reference_cards);
  v.field(16, "trainer_cards", r.trainer_cards);
  v.field(17, "rollout_tp", r.rollout_tp);
  v.field(18, "rollout_ep", r.rollout_ep);
  v.field(19, "concurrency", r.concurrency);
  v.field(20, "kv_share", r.kv_share);
  v.field(21, "tp", r.tp);
  v.field(22, "pp", r.pp);
  v.field(23, "cp", r.cp);
  v.field(24, "ep", r.ep);
  v.field(25, "micro_batch_tokens", r.micro_batch_tokens);
  v.field(26, "runs", r.runs);
  v.field(27, "means_per_s", r.mechanisms_per_s);
  v.field(28, "means_busy", r.mechanisms_busy);
  v.field(29, "means_staleness", r.mechanisms_staleness);
  v.field(30, "means_layout", r.mechanisms_layout);
  v.field(31, "means_reason", r.mechanisms_reason);
  v.field(33, "groups_per_update", r.groups_per_update);
  v.field(34, "responses_per_group", r.responses_per_group);
  v.field(35, "of_colocated", r.of_colocated);
  v.field(32, "reason", r.reason);
}

}  // namespace temper::study
