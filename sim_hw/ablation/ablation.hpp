// Predicts the effect of each MoE training mechanism by switching it off and on, and compares it
// with the effect that its authors published (`temper ablation`). Published figures are only
// compared with; they enter no prediction. A prediction agrees if its effect (a gain, a share, or a
// ratio minus one) is within a tenth of the published one. It stays open where an assumed input
// decides it. No threads.
#pragma once

#include "core/describe.hpp"
#include "core/result.hpp"
#include "sim_hw/catalog/catalog.hpp"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace temper::sim_hw {

enum class Agreement { Agrees, PredictsLess, PredictsMore, Open, NothingPublished };
/// Whether the inputs that decide a row (a trace, a batch size) were published or had to be
/// assumed.
enum class AblationInput { Published, Assumed };

struct AblationRow {
  std::string mechanism;
  std::string conditions;
  std::string figure;  ///< The quantity that `off` and `on` report.
  std::string off;
  std::string on;
  double predicted = 0;             ///< Effect as a fraction: 0.15 is +15 %.
  std::optional<double> published;  ///< Effect as a fraction.
  AblationInput input = AblationInput::Published;
  std::string why;  ///< The basis of the prediction, and why it differs from the published figure.

  Agreement agreement() const;
};
void describe(auto& v, AblationRow& r) {
  v.field(1, "mechanism", r.mechanism, {.doc = "Mechanism that is switched off and on."});
  v.field(2, "conditions", r.conditions, {.doc = "Model, cluster, layout."});
  v.field(3, "figure", r.figure, {.doc = "Quantity of `off` and `on`."});
  v.field(4, "off", r.off, {.doc = "Value without the mechanism."});
  v.field(5, "on", r.on, {.doc = "Value with the mechanism."});
  v.field(6, "predicted", r.predicted, {.doc = "Predicted effect as a fraction."});
  v.field(7, "published", r.published, {.doc = "Effect as a fraction, as the authors report it."});
  v.field(8, "why", r.why, {.doc = "Basis of the prediction."});
}

/// Recorded traces of the 718B model, used instead of generated ones; formats: traces.hpp.
struct AblationTraces {
  std::string expert_loads;  ///< A file; empty: generate the loads.
  std::string samples;       ///< A file; empty: generate the samples.
};
/// One row per mechanism and figure. Takes less than a second.
Result<std::vector<AblationRow>> moe_ablation(Catalog& catalog, const AblationTraces& traces = {});

/// Formats a fraction as "+15.0 %".
std::string effect_text(double effect);
std::string_view agreement_text(Agreement agreement);
/// A Markdown table of the figures, then a list of conditions and reasons.
std::string ablation_markdown(std::span<const AblationRow> rows);

}  // namespace temper::sim_hw
