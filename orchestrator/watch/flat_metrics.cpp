#include "orchestrator/watch/flat_metrics.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace temper::orchestrator {
namespace {

// Names in TRL 1.x (GRPOTrainer, AsyncGRPOTrainer), verl (metric_utils.py) and prime-rl
// (monitors/wandb/overview.py), as of 2026-11. A name is listed only if the figure has the same
// meaning; several names are separated by spaces.
constexpr std::array<Alias, 51> kNames{{
    {"step", "", "training/global_step", "", "The policy version that the step produced."},
    {"time", "", "", "", "Seconds since the start of the run, on its clock."},
    {"seconds",
     "step_time",
     "timing_s/step perf/time_per_step",
     "time/step",
     "Seconds since the previous step."},
    {"reward",
     "reward",
     "critic/score/mean",
     "train/agg/all/reward/mean",
     "Mean reward of the batch."},
    {"loss", "loss", "actor/pg_loss", "loss/mean", "Loss, mean over minibatches."},
    {"kl", "kl", "actor/kl_loss", "", "KL to the reference (k3 estimate), mean over tokens."},
    {"clip_fraction",
     "clip_ratio/region_mean",
     "actor/pg_clipfrac",
     "",
     "Share of tokens whose ratio was clipped."},
    {"ratio_mean",
     "ratio",
     "",
     "",
     "Importance ratio (current over behaviour probability), mean before the step."},
    {"entropy",
     "entropy",
     "actor/entropy",
     "entropy/all/mean",
     "Entropy estimate: mean of -log-prob over tokens."},
    {"gradient_norm",
     "grad_norm",
     "actor/grad_norm",
     "optim/grad_norm",
     "Global gradient norm before clipping."},
    {"tokens_per_s/raw", "", "", "", "Tokens sampled per second, trained or not."},
    {"tokens_per_s/trained",
     "training_tok/s",
     "",
     "perf/throughput",
     "Prompt and response tokens of trained groups per second."},
    {"tokens_per_s/effective",
     "",
     "",
     "",
     "Trained tokens per second, without groups whose rewards are all equal."},
    {"staleness/mean", "", "", "off_policy/mean", "Mean age of the groups of the batch, in steps."},
    {"staleness/max",
     "",
     "",
     "off_policy/max",
     "Largest age of the groups of the batch, in steps."},
    {"queue/generating", "", "", "", "Groups with a response that is still being generated."},
    {"queue/scoring", "", "", "", "Groups that wait for reference log-probs or rewards."},
    {"queue/ready", "", "", "", "Groups that wait for the trainer."},
    {"queue/training", "", "", "", "Groups of the current step."},
    {"states/*", "", "", "", "Share of card time in this state since the previous step."},
    {"resumes", "", "", "", "Number of times the run was resumed or rolled back."},
    {"log_ratio", "", "", "", "Mean of |log importance ratio| before the step."},
    {"behaviour_weight", "", "", "", "Mean behaviour weight of tokens, as used in the loss."},
    {"capped_fraction", "", "", "", "Share of tokens whose behaviour weight was capped."},
    {"rewards/mean", "", "critic/rewards/mean", "", "Mean reward over responses."},
    {"rewards/min", "", "critic/rewards/min critic/score/min", "", "Smallest reward of the batch."},
    {"rewards/max", "", "critic/rewards/max critic/score/max", "", "Largest reward of the batch."},
    {"rewards/std", "reward_std", "", "", "Standard deviation of the rewards of the batch."},
    {"length/mean",
     "completions/mean_length",
     "response_length/mean",
     "",
     "Mean response length, in tokens."},
    {"length/min",
     "completions/min_length",
     "response_length/min",
     "",
     "Shortest response, in tokens."},
    {"length/max",
     "completions/max_length",
     "response_length/max",
     "",
     "Longest response, in tokens."},
    {"length/std", "", "", "", "Standard deviation of response lengths, in tokens."},
    {"equal_groups",
     "frac_reward_zero_std",
     "",
     "",
     "Share of groups whose rewards were all equal: they have no gradient."},
    {"groups/trained", "", "", "", "Groups trained since the previous step."},
    {"groups/filtered", "", "", "", "Groups dropped because all their rewards were equal."},
    {"groups/failed", "", "", "", "Groups dropped because responses failed."},
    {"groups/evicted",
     "",
     "",
     "off_policy/dropped",
     "Groups dropped because of their age (never by `exact`)."},
    {"restarts", "", "", "", "Restarts of actors and resumes so far."},
    {"evaluation/step", "", "", "", "Policy version of the newest evaluation."},
    {"evaluation/pass_1", "", "", "", "Share of held-out responses that passed (pass@1)."},
    {"evaluation/pass_1_low",
     "",
     "",
     "",
     "Lower end of its 95 % interval (Wilson; each problem is a trial)."},
    {"evaluation/pass_1_high", "", "", "", "Upper end of that interval."},
    {"evaluation/pass_k", "", "", "", "Share of problems with a response that passed (pass@k)."},
    {"evaluation/reward", "", "", "", "Mean reward of held-out responses."},
    {"evaluation/problems", "", "", "", "Number of held-out problems."},
    {"evaluation/samples", "", "", "", "Responses per problem."},
    {"evaluation/failed",
     "",
     "",
     "",
     "Responses of the evaluation that were not generated or judged."},
    {"evaluation/seconds", "", "", "", "Duration of the evaluation, in seconds."},
    {"evaluation/best", "", "", "", "Highest `evaluation/pass_1` so far."},
    {"busy", "", "", "", "Share of card time in the six working states."},
    {"waiting",
     "",
     "",
     "",
     "Share of card time spent waiting for data, weights or the staleness bound."},
}};

/// Reads objects of numbers, booleans, nulls and plain strings; such a line has nothing else. It is
/// separate from the general JSON parser for speed alone: opening the page of a run of 100,000
/// steps reads as many lines, and this parser allocates nothing. A test compares the two.
class LineReader {
 public:
  explicit LineReader(std::string_view text) : text_(text) {}

  bool read(FlatMetrics& to) { return object("", to) && at_ == text_.size(); }

 private:
  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c)
      return false;
    ++at_;
    return true;
  }
  bool word(std::string_view& to) {
    if (!take('"'))
      return false;
    const std::size_t end = text_.find_first_of("\"\\", at_);
    if (end == std::string_view::npos || text_[end] != '"')
      return false;
    to = text_.substr(at_, end - at_);
    at_ = end + 1;
    return true;
  }
  bool literal(std::string_view what) {
    if (text_.substr(at_, what.size()) != what)
      return false;
    at_ += what.size();
    return true;
  }
  bool value(const std::string& name, FlatMetrics& to) {
    if (at_ >= text_.size())
      return false;
    if (text_[at_] == '{')
      return object(name + "/", to);
    std::string_view ignored;
    if (text_[at_] == '"')
      return word(ignored);
    if (literal("null"))
      return true;
    if (literal("true"))
      return to.emplace_back(name, 1), true;
    if (literal("false"))
      return to.emplace_back(name, 0), true;
    double number = 0;
    const auto [end, error] =
        std::from_chars(text_.data() + at_, text_.data() + text_.size(), number);
    if (error != std::errc() || !std::isfinite(number))
      return false;
    at_ = static_cast<std::size_t>(end - text_.data());
    to.emplace_back(name, number);
    return true;
  }
  bool object(const std::string& prefix, FlatMetrics& to) {
    if (!take('{') || prefix.size() > 256)
      return false;
    if (take('}'))
      return true;
    do {
      std::string_view key;
      if (!word(key) || !take(':') || !value(prefix + std::string(key), to))
        return false;
    } while (take(','));
    return take('}');
  }

  const std::string_view text_;
  std::size_t at_ = 0;
};

/// Appends `busy` and `waiting`, sums over states that are read most often.
void add_shares(FlatMetrics& flat) {
  double busy = 0, waiting = 0;
  bool any = false;
  for (const auto& [name, value] : flat) {
    if (!name.starts_with("states/"))
      continue;
    any = true;
    const std::string_view state = std::string_view(name).substr(7);
    if (state.starts_with("wait-"))
      waiting += value;
    else if (state == "train" || state == "decode" || state == "prefill" || state == "reference" ||
             state == "reward" || state == "evaluate")
      busy += value;
  }
  if (!any)
    return;
  flat.emplace_back("busy", busy);
  flat.emplace_back("waiting", waiting);
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    words.emplace_back(word);
    text.remove_prefix(std::min(text.size(), word.size() + 1));
  }
  return words;
}

}  // namespace

std::string_view Alias::in(AliasTable table) const {
  switch (table) {
    case AliasTable::Trl:
      return trl;
    case AliasTable::Verl:
      return verl;
    case AliasTable::PrimeRl:
      return prime_rl;
  }
  return {};
}

std::optional<FlatMetrics> flatten_line(std::string_view line) {
  FlatMetrics flat;
  flat.reserve(64);
  if (!LineReader(line).read(flat))
    return std::nullopt;
  add_shares(flat);
  return flat;
}

std::span<const Alias> metric_names() {
  return kNames;
}

FlatMetrics with_aliases(FlatMetrics flat, const std::vector<AliasTable>& tables) {
  const std::size_t ours = flat.size();
  for (const AliasTable table : tables) {
    for (std::size_t i = 0; i < ours; ++i) {
      const auto it = std::ranges::find(kNames, flat[i].first, &Alias::ours);
      if (it == kNames.end())
        continue;
      for (const std::string& name : words_of(it->in(table))) {
        if (std::ranges::find(flat, name, [](const auto& m) { return m.first; }) == flat.end())
          flat.emplace_back(name, flat[i].second);
      }
    }
  }
  return flat;
}

}  // namespace temper::orchestrator
