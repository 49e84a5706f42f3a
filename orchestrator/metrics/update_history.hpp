// The completed steps of a run in bounded memory: the latest ones in full, and the number and
// rewards of all. metrics.jsonl has every step in full.
#pragma once

#include "actors/protocol/judge_usage.hpp"
#include "actors/protocol/update_metrics.hpp"
#include "core/describe.hpp"
#include "orchestrator/metrics/source_figures.hpp"

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace temper::orchestrator {

struct TokenCounts {
  Tokens generated, trained, effective;
};

/// Groups by outcome.
struct GroupCounts {
  std::uint64_t trained = 0, filtered = 0, failed = 0, evicted = 0;
};

/// Outstanding groups by progress.
struct QueueDepth {
  std::int64_t generating = 0;  ///< Some response is not generated yet.
  std::int64_t scoring = 0;     ///< Generated; reference scores or rewards are missing.
  std::int64_t ready = 0;       ///< Complete, waiting for the trainer.
  std::int64_t training = 0;
};

/// Mean, extremes and deviation of some values.
class Spread {
 public:
  void add(double value);
  std::uint64_t count() const { return count_; }
  /// All figures are 0 if there are no values.
  double mean() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }
  double min() const { return min_; }
  double max() const { return max_; }
  double deviation() const;

 private:
  std::uint64_t count_ = 0;
  double sum_ = 0, squares_ = 0, min_ = 0, max_ = 0;
};

/// Figures of the batch of a step, over its responses.
struct BatchFigures {
  Spread reward;
  std::map<std::string, Spread> terms;  ///< Rewards by term of the verifier; empty: no sum.
  Spread length;                        ///< Tokens per response.
  std::uint64_t groups = 0;
  std::uint64_t equal_groups = 0;      ///< Groups with all rewards equal: they carry no gradient.
  std::vector<SourceFigures> sources;  ///< Empty: the run has one, and sets nothing aside.
};

/// Totals of the run at a moment.
struct Totals {
  Time time{};
  TokenCounts tokens;
  GroupCounts groups;
  actors::JudgeUsage judges{};
};

/// One completed step, with the totals of the run at that moment.
struct Update {
  PolicyVersion version;  ///< The version it produced.
  Time time{};
  actors::UpdateMetrics metrics;
  bool scored = false;  ///< Whether references scored its responses.
  TokenCounts tokens;
  GroupCounts groups;
  Totals before{};  ///< At the previous step, or at the resume after it.
  double staleness_mean = 0;
  std::uint64_t staleness_max = 0;
  QueueDepth queue;
  BatchFigures batch;
  std::optional<actors::JudgeUsage> judges{};  ///< None: no judge has worked.

  /// To the references; none without them, where `metrics` have 0.
  std::optional<double> kl() const { return scored ? std::optional(metrics.kl) : std::nullopt; }
};

/// Rewards of all steps: means over windows of kWindow steps, so that the best is never below the
/// first or the last, and a curve of at most kPoints points, each the mean over equally many steps
/// (the last one over fewer).
class RewardHistory {
 public:
  static constexpr std::size_t kWindow = 10, kPoints = 2048;

  void add(double reward);
  /// Means over the first and the last steps, and the best mean over as many consecutive ones.
  std::optional<double> first() const;
  std::optional<double> last() const;
  std::optional<double> best() const;
  std::vector<double> curve() const;

 private:
  struct Point {
    double sum = 0;
    std::uint64_t count = 0;
  };
  double last_mean() const;

  std::uint64_t total_ = 0;
  double first_sum_ = 0;
  std::optional<double> best_;  ///< Over full windows.
  std::deque<double> recent_;   ///< The last kWindow.
  std::uint64_t stride_ = 1;    ///< Steps per point.
  std::vector<Point> points_;
};

class UpdateHistory {
 public:
  /// Minimum number of steps that are available, if there were as many.
  static constexpr std::size_t kKept = 2048;
  enum class Keep { Latest, All };

  explicit UpdateHistory(Keep keep) : keep_(keep) {}

  void add(const Update& update);
  std::uint64_t count() const { return first_ + kept_.size(); }
  /// The latest steps, in order of version.
  const std::vector<Update>& kept() const { return kept_; }
  /// Index of the first of them, counted from 0.
  std::uint64_t first() const { return first_; }
  const RewardHistory& rewards() const { return rewards_; }
  /// State needed for a rollback.
  struct Mark {
    std::uint64_t count = 0;
    RewardHistory rewards;
  };
  Mark mark() const { return {count(), rewards_}; }
  void go_back(const Mark& mark);

 private:
  Keep keep_;
  std::uint64_t first_ = 0;
  std::vector<Update> kept_;
  RewardHistory rewards_;
};

}  // namespace temper::orchestrator
