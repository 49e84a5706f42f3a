#include "study/search/hill_climb.hpp"

#include "core/random.hpp"
#include "core/yaml.hpp"
#include "orchestrator/pipeline/placement.hpp"
#include "orchestrator/pipeline/validate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace temper::study {
namespace {

/// Draws per run of the sample: most points of a space are no candidates.
constexpr int kDrawsPerRun = 40;

struct Tried {
  const Space* space = nullptr;
  Space::Point point;
  orchestrator::PipelineConfig config;
  double score = 0;
  bool expanded = false;
};

class HillClimber {
 public:
  HillClimber(const Space& space,
              LayoutChooser& layouts,
              const HillClimbOptions& options,
              HillClimbed& tally)
      : space_(space), layouts_(layouts), options_(options), tally_(tally) {}

  std::vector<Tried> run(int runs) {
    left_ = runs;
    sample((runs + 2) / 3);
    while (left_ > 0 && climb()) {
    }
    return std::move(tried_);
  }

 private:
  void sample(int runs) {
    Random random(options_.seed, "tune");
    std::vector<Tried> batch;
    for (int draw = 0; draw < runs * kDrawsPerRun && std::ssize(batch) < runs; ++draw) {
      Space::Point point;
      for (const Space::Axis& axis : space_.axes())
        point.push_back(random.below(axis.values.size()));
      consider(std::move(point), batch);
    }
    run_batch(std::move(batch));
  }

  /// False: every neighbour of every point is known.
  bool climb() {
    std::vector<Tried>::iterator best = tried_.end();
    for (auto it = tried_.begin(); it != tried_.end(); ++it) {
      if (!it->expanded && (best == tried_.end() || it->score > best->score))
        best = it;
    }
    if (best == tried_.end())
      return false;
    best->expanded = true;
    const Space::Point from = best->point;
    std::vector<Tried> batch;
    for (std::size_t axis = 0; axis < from.size(); ++axis) {
      Space::Point to = from;
      if (from[axis] > 0) {
        --to[axis];
        consider(to, batch);
        ++to[axis];
      }
      if (++to[axis] < space_.axes()[axis].values.size())
        consider(std::move(to), batch);
    }
    run_batch(std::move(batch));
    return true;
  }

  /// Adds the point to the batch if it is new and a candidate.
  void consider(Space::Point point, std::vector<Tried>& batch) {
    if (std::ssize(batch) >= left_ || !seen_.insert(point).second)
      return;
    const auto placed = space_.at(point);
    if (!placed)
      return;  // the numbers make no placement: nothing that could be refused
    auto config = layouts_.complete(*placed, orchestrator::resolve_placement(*placed));
    if (!config)
      return refuse(config.error().context);
    config->steps =
        steps_for(options_.screening, static_cast<std::int32_t>(config->staleness.bound));
    if (!known_.insert(to_yaml(*config)).second)
      return;
    if (const auto broken = orchestrator::validate(*config); !broken.empty())
      return refuse(broken.front().message);
    batch.push_back({&space_, std::move(point), *std::move(config)});
  }

  void run_batch(std::vector<Tried> batch) {
    std::vector<orchestrator::PipelineConfig> configs;
    configs.reserve(batch.size());
    for (const Tried& t : batch)
      configs.push_back(t.config);
    left_ -= static_cast<int>(std::ssize(batch));
    tally_.runs += static_cast<int>(std::ssize(batch));
    const auto results = simulate_all(configs, options_.simulate);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (!results[i]) {
        refuse(results[i].error().context);
        continue;
      }
      batch[i].score = results[i]->steady.sustained_per_s;
      tried_.push_back(std::move(batch[i]));
    }
  }

  void refuse(const std::string& reason) { ++tally_.refused[reason]; }

  const Space& space_;
  LayoutChooser& layouts_;
  const HillClimbOptions& options_;
  HillClimbed& tally_;
  int left_ = 0;
  std::vector<Tried> tried_;
  std::set<Space::Point> seen_;
  std::set<std::string> known_;  ///< Configurations, as YAML.
};

std::string most_frequent(const std::map<std::string, int>& reasons) {
  const auto most = std::ranges::max_element(
      reasons, [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == reasons.end() ? "there is nothing to try" : most->first;
}

}  // namespace

Result<HillClimbed> hill_climb(std::span<const Space> spaces,
                               LayoutChooser& layouts,
                               const HillClimbOptions& options) {
  HillClimbed out;
  std::vector<Tried> tried;
  for (std::size_t i = 0; i < spaces.size(); ++i) {
    HillClimber search(spaces[i], layouts, options, out);
    const int spaces_left = static_cast<int>(spaces.size() - i);
    auto found = search.run((options.runs - out.runs + spaces_left - 1) / spaces_left);
    std::ranges::move(found, std::back_inserter(tried));
  }
  std::ranges::stable_sort(tried, std::ranges::greater{}, &Tried::score);
  std::vector<orchestrator::PipelineConfig> finalists;
  for (std::size_t i = 0; i < tried.size() && std::ssize(finalists) < options.finalists; ++i) {
    finalists.push_back(tried[i].config);
    finalists.back().steps = steps_for(options.final_updates,
                                       static_cast<std::int32_t>(tried[i].config.staleness.bound));
  }
  const auto results = simulate_all(finalists, options.simulate);
  bool found = false;
  for (std::size_t i = 0; i < finalists.size(); ++i) {
    if (!results[i] ||
        (found && results[i]->steady.sustained_per_s <= out.figures.steady.sustained_per_s))
      continue;
    found = true;
    out.config = finalists[i];
    out.figures = *results[i];
  }
  if (!found)
    return invalid_input(fmt::format("nothing could be run: {}", most_frequent(out.refused)));
  return out;
}

}  // namespace temper::study
