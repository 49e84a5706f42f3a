#include "orchestrator/metrics/metric_table.hpp"

#include "core/json.hpp"
#include "core/statistics.hpp"
#include "orchestrator/metrics/metrics_line.hpp"

#include <fmt/format.h>

#include <array>

namespace temper::orchestrator {
namespace {
namespace table {

using Line = const MetricsLine&;
using Evaluation = const EvaluationFigures&;
using Judges = const JudgeFigures&;
using Source = const SourceFigures&;
using EvaluatedSource = const command::Evaluated::Source&;

constexpr double number(auto count) {
  return static_cast<double>(count);
}
double to_4_places(double value) {
  return rounded(value, 1e4);
}
double share(std::uint64_t part, std::uint64_t whole) {
  return whole > 0 ? to_4_places(number(part) / number(whole)) : 0;
}
double interval(Line l) {
  return seconds(l.update.time - l.update.before.time);
}
double rate(Line l, Tokens TokenCounts::*tokens) {
  const Tokens done = l.update.tokens.*tokens - l.update.before.tokens.*tokens;
  const double took = interval(l);
  return took > 0 ? to_4_places(number(done.count()) / took) : 0;
}
double since(Judges j, std::uint64_t actors::JudgeUsage::*count) {
  return number(j.now.*count - j.before.*count);
}
double since(Line l, std::uint64_t GroupCounts::*groups) {
  return number(l.update.groups.*groups - l.update.before.groups.*groups);
}
std::optional<double> of_experts(Line l, double actors::ExpertMetrics::*share) {
  const auto& experts = l.update.metrics.experts;
  return experts ? std::optional((*experts).*share) : std::nullopt;
}
std::optional<double> mean_reward(Source s) {
  if (s.responses == 0)
    return std::nullopt;
  return to_4_places(s.rewards / number(s.responses));
}

// Names in TRL 1.x (GRPOTrainer, AsyncGRPOTrainer), verl (metric_utils.py) and prime-rl
// (monitors/wandb/overview.py), as of 2026-11. A name is listed only if the figure has the same
// meaning. Rows of one nested object stand together; the page and the report show groups in the
// order of their first rows.
constexpr auto kTable = std::to_array<Metric>({
    {.name = "step",
     .unit = "version",
     .doc = "The policy version that the step produced.",
     .names = {"", "training/global_step"},
     .value = [](Line l) { return number(l.update.version.value()); }},
    {.name = "time",
     .unit = "s",
     .doc = "Seconds since the start of the run, on its clock.",
     .value = [](Line l) { return seconds(l.update.time.time_since_epoch()); }},
    {.name = "reward",
     .doc = "Mean reward of the batch.",
     .place = {"Reward", "batch"},
     .names = {"reward", "critic/score/mean", "train/agg/all/reward/mean"},
     .value = [](Line l) { return l.update.metrics.reward_mean; }},
    {.name = "tokens_per_s/raw",
     .unit = "tokens/s",
     .doc = "Tokens sampled per second, trained or not.",
     .place = {"Tokens per second", "raw"},
     .value = [](Line l) { return rate(l, &TokenCounts::generated); }},
    {.name = "tokens_per_s/trained",
     .unit = "tokens/s",
     .doc = "Prompt and response tokens of trained groups per second.",
     .place = {"Tokens per second", "trained"},
     .names = {"training_tok/s", "", "perf/throughput"},
     .value = [](Line l) { return rate(l, &TokenCounts::trained); }},
    {.name = "tokens_per_s/effective",
     .unit = "tokens/s",
     .doc = "Trained tokens per second, without groups whose rewards are all equal.",
     .place = {"Tokens per second", "effective"},
     .value = [](Line l) { return rate(l, &TokenCounts::effective); }},
    {.name = "entropy",
     .unit = "nats",
     .doc = "Entropy estimate: mean of -log-prob over tokens.",
     .place = {"Entropy", "entropy", InTerminal::Yes},
     .names = {"entropy", "actor/entropy", "entropy/all/mean"},
     .value = [](Line l) { return l.update.metrics.entropy; }},
    {.name = "kl",
     .unit = "nats",
     .doc = "KL to the reference (k3 estimate), mean over tokens. Absent without a reference.",
     .place = {"KL to the reference", "kl", InTerminal::Yes},
     .names = {"kl", "actor/kl_loss"},
     .if_any = [](Line l) { return l.update.kl(); }},
    {.name = "clip_fraction",
     .unit = "share",
     .doc = "Share of tokens whose ratio was clipped.",
     .place = {"Clipped tokens", "clipped", InTerminal::Yes},
     .names = {"clip_ratio/region_mean", "actor/pg_clipfrac"},
     .value = [](Line l) { return l.update.metrics.clip_fraction; }},
    {.name = "capped_fraction",
     .unit = "share",
     .doc = "Share of tokens whose behaviour weight was outside its range.",
     .place = {"Clipped tokens", "capped"},
     .value = [](Line l) { return l.update.metrics.capped_fraction; }},
    {.name = "gradient_norm",
     .doc = "Global gradient norm before clipping.",
     .place = {"Gradient norm", "norm", InTerminal::Yes},
     .names = {"grad_norm", "actor/grad_norm", "optim/grad_norm"},
     .value = [](Line l) { return l.update.metrics.gradient_norm; }},
    {.name = "learning_rate",
     .doc = "Learning rate of the policy.",
     .place = {"Learning rate", "rate"},
     .names = {"learning_rate", "actor/lr", "optim/lr"},
     .if_any = [](Line l) { return l.update.metrics.learning_rate; }},
    {.name = "length/mean",
     .unit = "tokens",
     .doc = "Mean response length, in tokens.",
     .place = {"Response length", "mean", InTerminal::Yes},
     .names = {"completions/mean_length", "response_length/mean"},
     .value = [](Line l) { return to_4_places(l.update.batch.length.mean()); }},
    {.name = "length/min",
     .unit = "tokens",
     .doc = "Shortest response, in tokens.",
     .place = {"Response length", "shortest"},
     .names = {"completions/min_length", "response_length/min"},
     .value = [](Line l) { return to_4_places(l.update.batch.length.min()); }},
    {.name = "length/max",
     .unit = "tokens",
     .doc = "Longest response, in tokens.",
     .place = {"Response length", "longest", InTerminal::Yes},
     .names = {"completions/max_length", "response_length/max"},
     .value = [](Line l) { return to_4_places(l.update.batch.length.max()); }},
    {.name = "length/std",
     .unit = "tokens",
     .doc = "Standard deviation of response lengths, in tokens.",
     .value = [](Line l) { return to_4_places(l.update.batch.length.deviation()); }},
    {.name = "queue/generating",
     .unit = "groups",
     .doc = "Groups with a response that is still being generated.",
     .place = {"Groups by stage", "generating"},
     .value = [](Line l) { return number(l.update.queue.generating); }},
    {.name = "queue/scoring",
     .unit = "groups",
     .doc = "Groups that wait for reference log-probs or rewards.",
     .place = {"Groups by stage", "scoring"},
     .value = [](Line l) { return number(l.update.queue.scoring); }},
    {.name = "queue/ready",
     .unit = "groups",
     .doc = "Groups that wait for the trainer.",
     .place = {"Groups by stage", "ready"},
     .value = [](Line l) { return number(l.update.queue.ready); }},
    {.name = "queue/training",
     .unit = "groups",
     .doc = "Groups of the current step.",
     .place = {"Groups by stage", "training"},
     .value = [](Line l) { return number(l.update.queue.training); }},
    {.name = "staleness/mean",
     .unit = "steps",
     .doc = "Mean age of the groups of the batch, in steps.",
     .place = {"Age of the batch", "mean"},
     .names = {"", "", "off_policy/mean"},
     .value = [](Line l) { return to_4_places(l.update.staleness_mean); }},
    {.name = "staleness/max",
     .unit = "steps",
     .doc = "Largest age of the groups of the batch, in steps.",
     .place = {"Age of the batch", "oldest"},
     .names = {"", "", "off_policy/max"},
     .value = [](Line l) { return number(l.update.staleness_max); }},
    {.name = "states/*",
     .unit = "share",
     .doc = "Share of card time in this state since the previous step."},
    {.name = "busy",
     .unit = "share",
     .doc = "Share of card time in the six working states.",
     .place = {"Card time", "busy"}},
    {.name = "waiting",
     .unit = "share",
     .doc = "Share of card time spent waiting for data, weights or the staleness bound.",
     .place = {"Card time", "waiting"}},
    {.name = "equal_groups",
     .unit = "share",
     .doc = "Share of groups whose rewards were all equal: they have no gradient.",
     .place = {"Groups without a gradient", "share", InTerminal::Yes},
     .names = {"frac_reward_zero_std"},
     .value = [](Line l) { return share(l.update.batch.equal_groups, l.update.batch.groups); }},
    {.name = "seconds",
     .unit = "s",
     .doc = "Seconds since the previous step.",
     .place = {"Seconds per step", "seconds", InTerminal::Yes},
     .names = {"step_time", "timing_s/step perf/time_per_step", "time/step"},
     .value = [](Line l) { return to_4_places(interval(l)); }},
    {.name = "loss",
     .doc = "Loss, mean over minibatches.",
     .names = {"loss", "actor/pg_loss", "loss/mean"},
     .value = [](Line l) { return l.update.metrics.loss; }},
    {.name = "ratio_mean",
     .doc = "Importance ratio (current over behaviour probability), mean before the step.",
     .names = {"ratio"},
     .value = [](Line l) { return l.update.metrics.ratio_mean; }},
    {.name = "log_ratio",
     .unit = "nats",
     .doc = "Mean of |log importance ratio| before the step.",
     .value = [](Line l) { return l.update.metrics.log_ratio; }},
    {.name = "ratio/effective",
     .unit = "share",
     .doc = "Effective sample size of the importance ratios before the step: (sum r)^2 / sum r^2, "
            "as a share of the tokens. 0: the trainer does not report it.",
     .place = {"Effective samples", "share", InTerminal::Yes},
     .value = [](Line l) { return l.update.metrics.effective_samples; }},
    {.name = "ratio/mismatch",
     .unit = "nats",
     .doc = "Mean of |log importance ratio| of tokens that the version being updated sampled: "
            "engine and trainer disagree about the same weights.",
     .place = {"Importance ratio", "mismatch", InTerminal::Yes},
     .value = [](Line l) { return l.update.metrics.mismatch; }},
    {.name = "ratio/stale",
     .unit = "nats",
     .doc = "The same of tokens that older versions sampled: mismatch and staleness.",
     .place = {"Importance ratio", "stale"},
     .value = [](Line l) { return l.update.metrics.stale_ratio; }},
    {.name = "ratio/stale_tokens",
     .unit = "share",
     .doc = "Share of tokens that older versions sampled.",
     .value = [](Line l) { return l.update.metrics.stale_tokens; }},
    {.name = "behaviour_weight",
     .doc = "Mean behaviour weight of tokens, as used in the loss.",
     .value = [](Line l) { return l.update.metrics.behaviour_weight; }},
    {.name = "critic/loss",
     .doc = "Loss of the critic (half the squared error), mean over minibatches. Without a critic, "
            "`critic/*` is absent.",
     .place = {"Critic", "loss"},
     .names = {"", "critic/vf_loss"},
     .if_any = [](Line l) { return l.update.metrics.critic_loss; }},
    {.name = "critic/value_mean",
     .doc = "Mean value of the tokens of the batch before the step.",
     .place = {"Critic", "value"},
     .names = {"", "critic/values/mean"},
     .if_any = [](Line l) { return l.update.metrics.critic_value_mean; }},
    {.name = "critic/explained_variance",
     .doc = "1 - Var(return - value) / Var(return) of the tokens before the step. 1: the critic "
            "knows every return; 0: no more than their mean.",
     .place = {"Critic", "explained variance", InTerminal::Yes},
     .names = {"", "critic/vf_explained_var"},
     .if_any = [](Line l) { return l.update.metrics.critic_explained_variance; }},
    {.name = "critic/clip_fraction",
     .unit = "share",
     .doc = "Share of tokens whose value was clipped (`algorithm.critic.value_clip`).",
     .place = {"Critic", "clipped"},
     .names = {"", "critic/vf_clipfrac"},
     .if_any = [](Line l) { return l.update.metrics.critic_clip_fraction; }},
    {.name = "experts/dropped",
     .unit = "share",
     .doc = "Share of the token copies for routed experts that were above the capacity of their "
            "expert. Without a capacity factor, `experts/*` is absent.",
     .place = {"Dropped copies", "all layers"},
     .if_any = [](Line l) { return of_experts(l, &actors::ExpertMetrics::dropped); }},
    {.name = "experts/dropped_most",
     .unit = "share",
     .doc = "The same, in the layer that drops most.",
     .place = {"Dropped copies", "worst layer"},
     .if_any = [](Line l) { return of_experts(l, &actors::ExpertMetrics::dropped_most); }},
    {.name = "rewards/mean",
     .doc = "Mean reward over responses.",
     .names = {"", "critic/rewards/mean"},
     .value = [](Line l) { return to_4_places(l.update.batch.reward.mean()); }},
    {.name = "rewards/min",
     .doc = "Smallest reward of the batch.",
     .names = {"", "critic/rewards/min critic/score/min"},
     .value = [](Line l) { return to_4_places(l.update.batch.reward.min()); }},
    {.name = "rewards/max",
     .doc = "Largest reward of the batch.",
     .names = {"", "critic/rewards/max critic/score/max"},
     .value = [](Line l) { return to_4_places(l.update.batch.reward.max()); }},
    {.name = "rewards/std",
     .doc = "Standard deviation of the rewards of the batch.",
     .names = {"reward_std"},
     .value = [](Line l) { return to_4_places(l.update.batch.reward.deviation()); }},
    {.name = "terms/*",
     .doc = "Mean reward of this term of the verifier over the batch, before its weight.",
     .place = {"Reward of terms", ""}},
    {.name = "judge/requests",
     .unit = "requests",
     .doc = "Requests to judges since the previous step, repeated ones included.",
     .place = {"Judge", "requests"},
     .of_judges = [](Judges j) { return since(j, &actors::JudgeUsage::requests); }},
    {.name = "judge/cached",
     .unit = "scores",
     .doc = "Scores that an earlier request for an equal question gave.",
     .place = {"Judge", "cached"},
     .of_judges = [](Judges j) { return since(j, &actors::JudgeUsage::cached); }},
    {.name = "judge/retries",
     .unit = "requests",
     .doc = "Requests that repeat a failed one.",
     .place = {"Judge", "retries"},
     .of_judges = [](Judges j) { return since(j, &actors::JudgeUsage::retries); }},
    {.name = "judge/input_tokens",
     .unit = "tokens",
     .doc = "Tokens of the questions, as judges report them.",
     .of_judges = [](Judges j) { return since(j, &actors::JudgeUsage::input_tokens); }},
    {.name = "judge/output_tokens",
     .unit = "tokens",
     .doc = "Tokens of the replies, as judges report them.",
     .of_judges = [](Judges j) { return since(j, &actors::JudgeUsage::output_tokens); }},
    {.name = "judge/cost",
     .doc = "Cost of judges since the start of the run, by `judge.input_price` and "
            "`judge.output_price`; a resume does not reset it.",
     .place = {"Cost of judges", "so far"},
     .of_judges = [](Judges j) { return rounded(j.now.cost, 1e6); }},
    {.name = "groups/trained",
     .unit = "groups",
     .doc = "Groups trained since the previous step.",
     .value = [](Line l) { return since(l, &GroupCounts::trained); }},
    {.name = "groups/filtered",
     .unit = "groups",
     .doc = "Groups dropped because all their rewards were equal.",
     .value = [](Line l) { return since(l, &GroupCounts::filtered); }},
    {.name = "groups/failed",
     .unit = "groups",
     .doc = "Groups dropped because responses failed.",
     .value = [](Line l) { return since(l, &GroupCounts::failed); }},
    {.name = "groups/evicted",
     .unit = "groups",
     .doc = "Groups dropped because of their age (never by `exact`).",
     .names = {"", "", "off_policy/dropped"},
     .value = [](Line l) { return since(l, &GroupCounts::evicted); }},
    {.name = "resumes",
     .doc = "Number of times the run was resumed or rolled back.",
     .value = [](Line l) { return number(l.resumes); }},
    {.name = "restarts",
     .doc = "Restarts of actors and resumes so far.",
     .value = [](Line l) { return number(l.restarts); }},
    {.name = "sources/groups/*",
     .unit = "groups",
     .doc = "Groups of the batch from this source (`task.sources`; `task`: the only one).",
     .place = {"Groups of sources", ""},
     .of_source = [](Source s) { return std::optional(number(s.groups)); }},
    {.name = "sources/reward/*",
     .doc = "Mean reward over the responses of these groups.",
     .place = {"Reward of sources", ""},
     .of_source = mean_reward},
    {.name = "sources/epoch/*",
     .doc = "Times that every problem of the source was visited or left out.",
     .of_source = [](Source s) { return std::optional(number(s.epoch)); }},
    {.name = "sources/set_aside/*",
     .unit = "problems",
     .doc = "Problems of the source that are set aside (`task.set_aside`).",
     .place = {"Problems set aside", ""},
     .of_source = [](Source s) { return std::optional(number(s.set_aside)); }},
    {.name = "sources/evaluation/*",
     .unit = "share",
     .doc = "Share of held-out responses of the source that passed (pass@1), of the newest "
            "evaluation.",
     .place = {"Held-out pass@1 of sources", ""},
     .of_evaluated_source = [](EvaluatedSource s) { return to_4_places(s.pass_1); }},
    {.name = "evaluation/step",
     .unit = "version",
     .doc = "Policy version of the newest evaluation.",
     .of_evaluation = [](Evaluation e) { return number(e.step.value()); }},
    {.name = "evaluation/pass_1",
     .unit = "share",
     .doc = "Share of held-out responses that passed (pass@1).",
     .place = {"Reward", "held out, pass@1"},
     .of_evaluation = [](Evaluation e) { return e.pass_1; }},
    {.name = "evaluation/pass_1_low",
     .unit = "share",
     .doc = "Lower end of its 95 % interval (Wilson; each problem is a trial).",
     .of_evaluation = [](Evaluation e) { return e.pass_1_low; }},
    {.name = "evaluation/pass_1_high",
     .unit = "share",
     .doc = "Upper end of that interval.",
     .of_evaluation = [](Evaluation e) { return e.pass_1_high; }},
    {.name = "evaluation/pass_k",
     .unit = "share",
     .doc = "Share of problems with a response that passed (pass@k).",
     .of_evaluation = [](Evaluation e) { return e.pass_k; }},
    {.name = "evaluation/reward",
     .doc = "Mean reward of held-out responses.",
     .place = {"Reward", "held out"},
     .of_evaluation = [](Evaluation e) { return e.reward; }},
    {.name = "evaluation/problems",
     .unit = "problems",
     .doc = "Number of held-out problems.",
     .of_evaluation = [](Evaluation e) { return number(e.problems); }},
    {.name = "evaluation/samples",
     .unit = "responses",
     .doc = "Responses per problem.",
     .of_evaluation = [](Evaluation e) { return number(e.samples); }},
    {.name = "evaluation/failed",
     .unit = "responses",
     .doc = "Responses of the evaluation that were not generated or judged.",
     .of_evaluation = [](Evaluation e) { return number(e.failed); }},
    {.name = "evaluation/seconds",
     .unit = "s",
     .doc = "Duration of the evaluation, in seconds.",
     .of_evaluation = [](Evaluation e) { return e.seconds; }},
    {.name = "evaluation/best",
     .unit = "share",
     .doc = "Highest `evaluation/pass_1` so far.",
     .of_evaluation = [](Evaluation e) { return e.best; }},
});

}  // namespace table
}  // namespace

std::string_view Metric::Names::in(AliasTable system) const {
  switch (system) {
    case AliasTable::Trl:
      return trl;
    case AliasTable::Verl:
      return verl;
    case AliasTable::PrimeRl:
      return prime_rl;
  }
  return {};
}

std::span<const Metric> metric_table() {
  return table::kTable;
}

std::string metric_table_json() {
  std::string text = "[";
  for (const Metric& m : table::kTable) {
    text += text.size() > 1 ? ",\n {" : "\n {";
    std::string_view separator;
    const auto field = [&](std::string_view key, std::string_view value) {
      text += fmt::format("{}\"{}\": {}", separator, key, to_json(std::string(value)));
      separator = ", ";
    };
    field("name", m.name);
    field("unit", m.unit);
    field("group", m.place.group);
    field("label", m.place.label);
    field("trl", m.names.trl);
    field("verl", m.names.verl);
    field("prime-rl", m.names.prime_rl);
    field("doc", m.doc);
    text += '}';
  }
  return text + "\n]\n";
}

}  // namespace temper::orchestrator
