#include "study/search/tune.hpp"

#include "actors/simulation/role_memory.hpp"
#include "core/parallel.hpp"
#include "core/yaml.hpp"
#include "orchestrator/pipeline/clusters.hpp"
#include "orchestrator/pipeline/load.hpp"
#include "orchestrator/pipeline/placement.hpp"
#include "orchestrator/pipeline/resolve.hpp"
#include "study/search/closed_form_correction.hpp"
#include "study/search/tune_judge.hpp"
#include "study/search/tune_machine.hpp"
#include "study/search/tune_objective.hpp"
#include "study/search/tune_screen.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <set>

namespace temper::study {
namespace {

/// Bounds of points with the same cards and engines, and of points that a screen keeps per run.
constexpr int kMostAlike = 2;
constexpr std::size_t kKeptPerRun = 8;
/// Steady updates of a sampled run. With time-shared cards there are enough to contain a whole turn
/// of at most bound + 1 updates, and the end of the previous one (study/simulate/simulate.hpp).
std::uint64_t sampled_updates(orchestrator::PlacementMode mode, std::int32_t bound) {
  constexpr std::uint64_t kLeast = 4;
  if (!traits_of(mode).alternates())
    return kLeast;
  return std::max<std::uint64_t>(kLeast, 2 * (static_cast<std::uint64_t>(bound) + 1));
}
/// A plan of another bound also gets a full run if it is less than this share behind.
constexpr double kNearlyAsGood = 0.1;
/// Runs between two corrections of the closed form.
constexpr std::size_t kBetweenCorrections = 4;
/// Runs per core between two checks of `stop`.
constexpr std::size_t kBatchPerThread = 8;

class Tuner {
 public:
  Tuner(const TuneOptions& options, std::vector<double> etas)
      : options_(options), etas_(std::move(etas)), judge_(options) {
    out_.objective = options.objective;
  }

  /// `given`: the configuration of the user; none if regions are searched.
  Result<TuneResult> tune(const std::optional<orchestrator::PipelineConfig>& given) {
    if (given) {
      TEMPER_TRY(const std::vector<VariedConfig> varied, varied_configs(options_));
      TEMPER_TRY_STATUS(make_screens(varied));
    }
    for (const TuneRegion& region : options_.regions)
      TEMPER_TRY_STATUS(make_screen(region.like, region.mode, ""));
    TEMPER_TRY_STATUS(screen());
    thin();
    TEMPER_TRY_STATUS(decide(given));
    return std::move(out_);
  }

 private:
  struct SearchPoint {
    ScreenPoint point;
    std::size_t screen = 0;
    Candidate candidate;
    std::optional<double> score;  ///< Score of its sampled run.
    bool expanded = false;
  };

  Status make_screens(const std::vector<VariedConfig>& varied) {
    for (const VariedConfig& combination : varied) {
      for (const orchestrator::PlacementMode mode : options_.modes) {
        if (orchestrator::has_several_clusters(combination.config) && traits_of(mode).shares)
          continue;
        TEMPER_TRY_STATUS(make_screen(combination.config, mode, combination.text));
      }
    }
    return {};
  }

  Status make_screen(const orchestrator::PipelineConfig& like,
                     orchestrator::PlacementMode mode,
                     const std::string& vary) {
    TEMPER_TRY(Screen screen,
               Screen::create({like,
                               mode,
                               etas_,
                               options_.constraints.max_memory,
                               vary,
                               options_.only,
                               total_cards_to_try(options_.objective, like)}));
    screens_.push_back(std::move(screen));
    return {};
  }

  /// Fills found_ with half of the runs: half of these the best of all, the rest the best of each
  /// mode and bound. The remaining points are in rest_.
  Status screen() {
    const auto all_runs = static_cast<std::size_t>(options_.runs);
    std::vector<std::vector<ScreenPoint>> best(screens_.size());
    const std::size_t keep = all_runs * kKeptPerRun;
    progress("screen", 0, screens_.size());
    std::mutex mutex;
    std::size_t done = 0;
    for_each_index(screens_.size(), options_.threads, [&](std::size_t i) {
      best[i] = screens_[i].run(judge_.score(), keep);
      const std::lock_guard lock(mutex);
      progress("screen", ++done, screens_.size());
    });
    for (const Screen& s : screens_) {
      out_.screened += s.screened();
      out_.fitting += s.fitting();
      for (const auto& [reason, count] : s.refused())
        out_.refused[reason] += count;
    }
    if (std::ranges::all_of(best, [](const auto& list) { return list.empty(); }))
      return nothing_fits();
    std::vector<std::pair<std::size_t, std::size_t>> order;  // Screen, place.
    for (std::size_t s = 0; s < best.size(); ++s) {
      for (std::size_t i = 0; i < best[s].size(); ++i)
        order.emplace_back(s, i);
    }
    std::ranges::stable_sort(order, std::ranges::greater{}, [&](const auto& at) {
      return best[at.first][at.second].score;
    });
    if (out_.fitting <= all_runs) {
      for (const auto& [s, i] : order)
        add(s, best[s][i], "screen");
      return {};
    }
    const std::size_t runs = std::max<std::size_t>(1, all_runs / 2);
    for (std::size_t i = 0; i < order.size() && found_.size() < runs / 2; ++i)
      add_unlike(order[i].first, best[order[i].first][order[i].second]);
    std::map<std::pair<std::size_t, std::size_t>, std::vector<std::size_t>> groups;
    for (const auto& [s, i] : order)
      groups[{s, best[s][i].space}].push_back(i);
    for (std::size_t place = 0; place < keep && found_.size() < runs; ++place) {
      for (const auto& [group, places] : groups) {
        if (place < places.size() && found_.size() < runs)
          add_unlike(group.first, best[group.first][places[place]]);
      }
    }
    rest_ = std::move(best);
    return {};
  }

  /// Adds another quarter of the runs: the best points that the screen left, by the closed form as
  /// corrected by the runs so far.
  void run_corrected() {
    const auto most = static_cast<std::size_t>(options_.runs) * 3 / 4;
    while (found_.size() < most && !stopped()) {
      ClosedFormCorrection correction;
      for (const SearchPoint& f : found_) {
        if (f.score)
          correction.add({f.screen, f.point.space}, f.point.score, *f.score);
      }
      std::vector<std::pair<double, std::pair<std::size_t, const ScreenPoint*>>> order;
      for (std::size_t s = 0; s < rest_.size(); ++s) {
        for (const ScreenPoint& p : rest_[s])
          order.push_back({p.score * correction.factor({s, p.space}), {s, &p}});
      }
      std::ranges::stable_sort(
          order, std::ranges::greater{}, [](const auto& o) { return o.first; });
      const std::size_t begin = found_.size(), end = std::min(most, begin + kBetweenCorrections);
      for (std::size_t i = 0; i < order.size() && found_.size() < end; ++i)
        add(order[i].second.first, *order[i].second.second, "corrected");
      if (found_.size() == begin)
        return;
      run_thinned(begin);
    }
  }

  /// A few points with the same cards and engines suffice; their neighbors are tried later.
  void add_unlike(std::size_t screen, const ScreenPoint& point) {
    const TuneRow row = tune_row(point.config, point.cards, "", "");
    const std::string key = fmt::format("{} {} {} {} {} {} {}",
                                        screen,
                                        row.eta,
                                        row.rollout_cards,
                                        row.trainer_cards,
                                        row.engines,
                                        point.config.simulation.rollout.tp,
                                        row.reference_cards);
    if (++alike_[key] <= kMostAlike)
      add(screen, point, "screen");
  }

  void add(std::size_t screen, ScreenPoint point, const char* found_by) {
    orchestrator::PipelineConfig alike = point.config;
    alike.steps = 1;
    if (!known_.insert(to_yaml(alike)).second)
      return;
    Candidate candidate{
        tune_row(point.config, point.cards, found_by, screens_[screen].region().vary),
        point.config,
        {}};
    judge_.fill_closed(candidate, point.closed);
    found_.push_back({std::move(point), screen, std::move(candidate), {}});
  }

  void thin() {
    run_thinned(0);
    run_corrected();
    auto left = static_cast<std::ptrdiff_t>(options_.runs) - std::ssize(found_);
    while (left > 0 && !stopped()) {
      SearchPoint* best = nullptr;
      for (SearchPoint& f : found_) {
        if (f.score && !f.expanded && (best == nullptr || *f.score > *best->score))
          best = &f;
      }
      if (best == nullptr)
        return;
      best->expanded = true;
      const std::size_t begin = found_.size();
      const std::size_t screen = best->screen;
      for (ScreenPoint& next : screens_[screen].neighbors(best->point, judge_.score()))
        add(screen, std::move(next), "neighbour");  // Invalidates `best`.
      found_.resize(std::min(found_.size(), begin + static_cast<std::size_t>(left)));
      left -= std::ssize(found_) - static_cast<std::ptrdiff_t>(begin);
      run_thinned(begin);
    }
  }

  /// Sampled runs of found_ from there on.
  void run_thinned(std::size_t begin) {
    const std::size_t step = kBatchPerThread * static_cast<std::size_t>(options_.threads);
    for (; begin < found_.size() && !stopped(); begin += step) {
      const std::size_t end = std::min(found_.size(), begin + step);
      std::vector<orchestrator::PipelineConfig> configs;
      for (std::size_t i = begin; i < end; ++i) {
        configs.push_back(found_[i].candidate.config);
        const std::int32_t bound = bound_of(configs.back());
        configs.back().steps =
            steps_for(sampled_updates(configs.back().placement.mode, bound), bound);
      }
      const auto on_run = [&](std::size_t done, std::size_t) {
        progress("sampled runs", begin + done, found_.size());
      };
      const auto results =
          simulate_all(configs, {options_.threads, options_.response_weight, on_run});
      for (std::size_t i = begin; i < end; ++i) {
        ++out_.runs;
        Candidate& c = found_[i].candidate;
        const auto& result = results[i - begin];
        if (!result) {
          c.row.reason = result.error().context;
          continue;
        }
        const Rates& r = result->steady;
        judge_.fill_sampled(c, r);
        found_[i].score = judge_.score_of(r);
        if (found_[i].score && *found_[i].score > best_score_) {
          best_score_ = *found_[i].score;
          best_so_far_ = judge_.text_of(c.row);
        }
      }
    }
  }

  Status decide(const std::optional<orchestrator::PipelineConfig>& given) {
    std::vector<const TuneRow*> rows;
    for (const SearchPoint& f : found_)
      rows.push_back(&f.candidate.row);
    out_.closed = agreement_of(rows);
    std::ranges::stable_sort(found_, [](const SearchPoint& a, const SearchPoint& b) {
      return a.score.value_or(0) > b.score.value_or(0);
    });
    if (given) {
      const orchestrator::PlacementConfig cards = orchestrator::resolve_placement(*given);
      out_.tried.push_back({tune_row(*given, cards, "as given", ""), *given, {}});
    }
    const std::size_t before = out_.tried.size();
    for (SearchPoint& f : found_)
      out_.tried.push_back(std::move(f.candidate));
    const std::vector<std::size_t> finals = finalists(before);
    std::vector<orchestrator::PipelineConfig> configs;
    for (const std::uint64_t more : {0U, 1U}) {  // Two draws of the lengths.
      for (const std::size_t i : finals) {
        configs.push_back(out_.tried[i].config);
        configs.back().steps = steps_for(options_.final_updates, bound_of(configs.back()));
        configs.back().seed += more;
      }
    }
    progress("full runs", 0, configs.size());
    const auto on_run = [this](std::size_t done, std::size_t of) {
      progress("full runs", done, of);
    };
    const auto results = simulate_all(configs, {options_.threads, 1, on_run});
    double squares = 0;
    int pairs = 0;
    for (std::size_t k = 0; k < finals.size(); ++k) {
      judge_.fill(out_.tried[finals[k]], results[k], &Figures::steady);
      const auto& again = results[finals.size() + k];
      if (!results[k] || !again)
        continue;
      const double a = results[k]->steady.sustained_per_s, b = again->steady.sustained_per_s;
      squares += std::pow(2 * (a - b) / (a + b), 2);
      ++pairs;
    }
    out_.error = pairs > 0 ? std::sqrt(squares / pairs) : 0;
    out_.stopped = stopped();
    return judge_.choose(out_);
  }

  /// Places in out_.tried, of which the first `before` were given and the others are sorted by
  /// their sampled runs: the given ones, the best few, and for every other bound its best point if
  /// it is nearly as good, because it may tie.
  std::vector<std::size_t> finalists(std::size_t before) const {
    std::vector<std::size_t> out;
    std::set<double> bounds;
    double best = 0;
    for (std::size_t i = 0; i < out_.tried.size(); ++i) {
      const TuneRow& row = out_.tried[i].row;
      const auto score = i >= before ? found_[i - before].score : std::nullopt;
      best = std::max(best, score.value_or(0));
      if (out.size() < before + static_cast<std::size_t>(options_.finalists) ||
          (score.value_or(0) > best * (1 - kNearlyAsGood) && !bounds.contains(row.eta))) {
        out.push_back(i);
        if (i >= before)
          bounds.insert(row.eta);
      }
    }
    return out;
  }

  /// Error of an empty search: the reason, and by how much the nearest plan misses.
  Status nothing_fits() const {
    const auto most = std::ranges::max_element(
        out_.refused, [](const auto& a, const auto& b) { return a.second < b.second; });
    std::string text = fmt::format(
        "no placement fits: {} points were screened{}",
        out_.screened,
        most == out_.refused.end() ? "" : fmt::format("; most frequent reason: {}", most->first));
    const auto memory = least_memory();
    if (memory) {
      text += fmt::format("; the nearest plan needs {:.1f} GB per device", *memory / 1e9);
      if (options_.constraints.max_memory) {
        const auto limit = static_cast<double>(options_.constraints.max_memory->count());
        text += fmt::format(", {:.1f} GB above --max-memory", (*memory - limit) / 1e9);
      }
    }
    return invalid_input(std::move(text));
  }

  /// The smallest memory limit, within 1 %, under which a point of the first eta fits; none if even
  /// the whole device memory does not suffice.
  std::optional<double> least_memory() const {
    const auto pipeline = orchestrator::resolve(screens_.front().region().like);
    if (!pipeline || !options_.constraints.max_memory)
      return std::nullopt;
    const auto fits = [&](double bytes) {
      return std::ranges::any_of(screens_, [&](const Screen& s) {
        Screen::Region region = s.region();
        region.etas.resize(1);
        region.max_memory = Bytes(static_cast<std::int64_t>(bytes));
        auto screen = Screen::create(region);
        return screen && screen->any_fits();
      });
    };
    double high = actors::device_capacity(*pipeline->simulation);
    double low = static_cast<double>(options_.constraints.max_memory->count());
    if (low >= high || !fits(high))
      return std::nullopt;
    while (high - low > 0.01 * high) {
      const double middle = (low + high) / 2;
      (fits(middle) ? high : low) = middle;
    }
    return high;
  }

  static std::int32_t bound_of(const orchestrator::PipelineConfig& c) {
    return static_cast<std::int32_t>(std::ceil(c.staleness.bound));
  }
  bool stopped() const { return options_.stop && options_.stop(); }
  void progress(const char* step, std::size_t done, std::size_t of) const {
    if (options_.on_progress)
      options_.on_progress({step, done, of, best_so_far_});
  }

  const TuneOptions& options_;
  const std::vector<double> etas_;
  const TuneJudge judge_;
  std::vector<Screen> screens_;
  std::vector<SearchPoint> found_;
  std::vector<std::vector<ScreenPoint>> rest_;  ///< Per screen, unsorted.
  std::set<std::string> known_;                 ///< Configurations, as YAML.
  std::map<std::string, int> alike_;  ///< Number of found_ with the same cards and engines.
  double best_score_ = 0;
  std::string best_so_far_;
  TuneResult out_;
};

}  // namespace

Result<TuneResult> tune(const TuneOptions& options) {
  TEMPER_TRY(std::vector<double> etas, allowed_etas(options));
  if (!options.regions.empty())
    return Tuner(options, std::move(etas)).tune(std::nullopt);
  TEMPER_TRY(const orchestrator::PipelineConfig given, options.config.load_valid(options.sets));
  const bool local = given.hardware == orchestrator::HardwareKind::Local;
  if (local && !options.calibration) {
    return invalid_input(
        "`hardware: local` needs a calibration of this machine; make one with `temper measure`, or "
        "name one with --calibration");
  }
  if (options.lengths && !local) {
    return invalid_input(
        "--lengths applies to `hardware: local` only; simulated hardware draws lengths from "
        "`simulation.response`");
  }
  if (options.objective == TuneObjective::Reward && !options.curve)
    return invalid_input("--objective reward needs --curve FILE, a sweep.csv of `temper sweep`");
  TEMPER_TRY_STATUS(check_batches(options));
  TEMPER_TRY_STATUS(check_costs(options.objective, given.cost));
  TEMPER_TRY_STATUS(check_total_cards(options));
  TuneOptions whole = options;
  if (whole.modes.empty()) {
    for (const actors::PlacementTraits& mode : actors::kPlacementModes)
      whole.modes.push_back(mode.value);
  }
  if (orchestrator::has_several_clusters(given) &&
      std::ranges::all_of(whole.modes, [](auto mode) { return traits_of(mode).shares; })) {
    return invalid_input(
        "--modes: roles of different clusters share no cards, so only `separate` can be tuned; "
        "nearest: --modes separate");
  }
  if (local)
    return tune_machine(whole, etas, given);
  return Tuner(whole, std::move(etas)).tune(given);
}

}  // namespace temper::study
