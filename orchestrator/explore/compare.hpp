// Staleness policies beside each other (scheduler/policy/): the same run on simulated hardware
// under each of them at each bound, as one sweep (explore/sweep.hpp). Prompt and response lengths
// derive from the seed and the response's id, so the k-th response is equally long under all.
//
// Figures are those of whole runs, since what a policy costs at the ends of a run is its own, and
// everything that was ever generated is counted:
//   wasted   tokens sampled that no update trained, over all tokens sampled
//   bias     mean length of trained responses over that of all begun, each as long as it would have
//            become: below 1, the trainer sees answers that are shorter than those of the policy.
//            (Over those generated to the end it would look better: a response that was aborted,
//            as long ones are, is not among them. Their mean is `generated_length`.)
#pragma once

#include "orchestrator/explore/evaluate.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace temper::orchestrator {

struct CompareOptions {
  std::filesystem::path config;
  std::vector<std::string> sets;  ///< Without staleness.policy and staleness.bound.
  std::vector<PolicyRule> policies;
  std::vector<double> etas;  ///< `sync` is run once, at 0.
  std::uint64_t steps = 0;   ///< Updates of each run; 0: as configured.
  EvaluateOptions evaluate;
};

/// Of a list on the command line; empty: all, in the order of PolicyRule. Errors: a name that is
/// none, or twice the same.
Result<std::vector<PolicyRule>> parse_policies(const std::vector<std::string>& names);
/// Errors: no number from 0 to 1024, or twice the same.
Result<std::vector<double>> parse_etas(const std::vector<std::string>& texts);

/// One run. Figures are 0 where nothing could be run, with the reason.
struct CompareRow {
  std::string policy;
  double eta = 0;
  std::uint64_t updates = 0;
  double seconds = 0;  ///< Virtual.
  double trained_per_s = 0, generated_per_s = 0;
  double busy = 0;
  std::int64_t staleness_max = 0;  ///< s = T - v0, of trained groups.
  double staleness_mean = 0;
  std::string staleness;  ///< "s:groups s:groups ..."
  double wasted = 0;      ///< Share of generated tokens.
  std::uint64_t groups_trained = 0, groups_evicted = 0;
  double trained_length = 0, generated_length = 0, begun_length = 0, bias = 0;
  std::string reason;
};

/// By eta, then by policy in the order given; `sync` first. Errors: the configuration cannot be
/// read or is not of simulated hardware; a set that the comparison decides.
Result<std::vector<CompareRow>> compare(const CompareOptions& options);

/// A table for people, with what could not be run below it.
std::string compare_text(const std::vector<CompareRow>& rows);
/// Time, largest s and waste over eta, a line for each policy; a gap where nothing ran. Requires:
/// a row at least.
std::string compare_svg(const std::vector<CompareRow>& rows, const std::string& title);

template <class V>
void describe(V& v, CompareRow& r) {
  v.field(1, "policy", r.policy);
  v.field(2, "eta", r.eta);
  v.field(3, "updates", r.updates);
  v.field(4, "seconds", r.seconds);
  v.field(5, "trained_per_s", r.trained_per_s);
  v.field(6, "generated_per_s", r.generated_per_s);
  v.field(7, "busy", r.busy);
  v.field(8, "staleness_max", r.staleness_max);
  v.field(9, "staleness_mean", r.staleness_mean);
  v.field(10, "staleness", r.staleness);
  v.field(11, "wasted", r.wasted);
  v.field(12, "groups_trained", r.groups_trained);
  v.field(13, "groups_evicted", r.groups_evicted);
  v.field(14, "trained_length", r.trained_length);
  v.field(15, "generated_length", r.generated_length);
  v.field(16, "begun_length", r.begun_length);
  v.field(17, "bias", r.bias);
  v.field(18, "reason", r.reason);
}

}  // namespace temper::orchestrator
