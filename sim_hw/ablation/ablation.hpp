// What each mechanism of MoE training is worth: predicted with it off and on, beside what its
// authors published (docs/moe_mechanisms.md, `temper ablation`). Published figures are compared
// with, never used. A prediction agrees if its effect (a gain; a share; a ratio less one) is within
// a tenth of the published one; it stays open where an assumed input decides it. No threads.
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
/// Whether what decides a row was published or had to be assumed: a trace, a batch.
enum class AblationInput { Published, Assumed };

struct AblationRow {
  std::string mechanism;
  std::string conditions;
  std::string figure;  ///< What off and on are.
  std::string off;
  std::string on;
  double predicted = 0;             ///< Effect, a fraction: 0.15 is +15 %.
  std::optional<double> published;  ///< The same.
  AblationInput input = AblationInput::Published;
  std::string why;  ///< What the prediction rests on, and where it parts.

  Agreement agreement() const;
};
template <class V>
void describe(V& v, AblationRow& r) {
  v.field(1, "mechanism", r.mechanism, {.doc = "What is switched."});
  v.field(2, "conditions", r.conditions, {.doc = "Model, cluster, layout."});
  v.field(3, "figure", r.figure, {.doc = "What is given without and with it."});
  v.field(4, "off", r.off, {.doc = "Without it."});
  v.field(5, "on", r.on, {.doc = "With it."});
  v.field(6, "predicted", r.predicted, {.doc = "Effect, a fraction."});
  v.field(7, "published", r.published, {.doc = "Effect as its authors report it."});
  v.field(8, "why", r.why, {.doc = "What the prediction rests on."});
}

/// Recorded traces of the 718B model in place of generated ones; see moe_traces.hpp.
struct AblationTraces {
  std::string expert_loads;  ///< A file; empty: generated.
  std::string samples;       ///< The same.
};
/// One row per mechanism and figure. Takes less than a second.
Result<std::vector<AblationRow>> moe_ablation(Catalog& catalog, const AblationTraces& traces = {});

/// "+15.0 %".
std::string effect_text(double effect);
std::string_view agreement_text(Agreement agreement);
/// A table of the figures and a list of conditions and reasons.
std::string ablation_markdown(std::span<const AblationRow> rows);

}  // namespace temper::sim_hw
