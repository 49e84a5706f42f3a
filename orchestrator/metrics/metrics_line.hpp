// One line of metrics.jsonl: the figures of a step, and of the interval since the previous one.
// TensorBoard, Prometheus and the side-cars show the same figures under the same names, with `/`
// between the parts (docs/how-to/watch.md).
#pragma once

#include "orchestrator/metrics/run_metrics.hpp"

namespace temper::orchestrator {

struct Rates {
  double raw = 0, trained = 0, effective = 0;
};
struct Ages {
  double mean = 0;
  std::uint64_t max = 0;
};
struct SpreadFigures {
  double mean = 0, min = 0, max = 0, std = 0;
};

/// The newest evaluation that finished since the previous line, of this or an earlier version.
struct EvaluationFigures {
  PolicyVersion step;  ///< The evaluated version.
  double pass_1 = 0, pass_k = 0, reward = 0;
  std::uint64_t problems = 0, samples = 0, failed = 0;
  double seconds = 0;
  double best = 0;                         ///< Highest pass_1 so far.
  double pass_1_low = 0, pass_1_high = 0;  ///< 95 % interval, over problems.
};

struct MetricsLine {
  PolicyVersion step;
  Time time{};
  double seconds = 0;  ///< Since the previous line.
  double reward = 0;
  SpreadFigures rewards;
  SpreadFigures length;
  double equal_groups = 0;  ///< Share of groups whose rewards were all equal.
  actors::UpdateMetrics metrics;
  Rates tokens_per_s;
  Ages staleness;
  QueueDepth queue;
  GroupCounts groups;  ///< Since the previous line.
  std::map<actors::CardState, double> states;
  std::uint64_t resumes = 0;
  std::uint64_t restarts = 0;
  std::optional<EvaluationFigures> evaluation;
};

template <class V>
void describe(V& v, QueueDepth& q) {
  v.field(1, "generating", q.generating);
  v.field(2, "scoring", q.scoring);
  v.field(3, "ready", q.ready);
  v.field(4, "training", q.training);
}
template <class V>
void describe(V& v, Rates& r) {
  v.field(1, "raw", r.raw);
  v.field(2, "trained", r.trained);
  v.field(3, "effective", r.effective);
}
template <class V>
void describe(V& v, Ages& a) {
  v.field(1, "mean", a.mean);
  v.field(2, "max", a.max);
}
template <class V>
void describe(V& v, SpreadFigures& s) {
  v.field(1, "mean", s.mean);
  v.field(2, "min", s.min);
  v.field(3, "max", s.max);
  v.field(4, "std", s.std);
}
template <class V>
void describe(V& v, GroupCounts& g) {
  v.field(1, "trained", g.trained);
  v.field(2, "filtered", g.filtered);
  v.field(3, "failed", g.failed);
  v.field(4, "evicted", g.evicted);
}
template <class V>
void describe(V& v, EvaluationFigures& e) {
  v.field(1, "step", e.step);
  v.field(2, "pass_1", e.pass_1);
  v.field(3, "pass_k", e.pass_k);
  v.field(4, "reward", e.reward);
  v.field(5, "problems", e.problems);
  v.field(6, "samples", e.samples);
  v.field(7, "failed", e.failed);
  v.field(8, "seconds", e.seconds);
  v.field(9, "best", e.best);
  v.field(10, "pass_1_low", e.pass_1_low);
  v.field(11, "pass_1_high", e.pass_1_high);
}
template <class V>
void describe(V& v, MetricsLine& l) {
  v.field(1, "step", l.step);
  v.field(2, "time", l.time);
  v.field(3, "reward", l.reward);
  v.field(4, "loss", l.metrics.loss);
  v.field(5, "kl", l.metrics.kl);
  v.field(6, "clip_fraction", l.metrics.clip_fraction);
  v.field(7, "ratio_mean", l.metrics.ratio_mean);
  v.field(8, "entropy", l.metrics.entropy);
  v.field(9, "gradient_norm", l.metrics.gradient_norm);
  v.field(10, "tokens_per_s", l.tokens_per_s);
  v.field(11, "staleness", l.staleness);
  v.field(12, "queue", l.queue);
  v.field(13, "states", l.states);
  v.field(14, "resumes", l.resumes);
  v.field(15, "log_ratio", l.metrics.log_ratio);
  v.field(16, "behaviour_weight", l.metrics.behaviour_weight);
  v.field(17, "capped_fraction", l.metrics.capped_fraction);
  v.field(18, "seconds", l.seconds);
  v.field(19, "rewards", l.rewards);
  v.field(20, "length", l.length);
  v.field(21, "equal_groups", l.equal_groups);
  v.field(22, "groups", l.groups);
  v.field(23, "restarts", l.restarts);
  v.field(24, "evaluation", l.evaluation);
}

}  // namespace temper::orchestrator
