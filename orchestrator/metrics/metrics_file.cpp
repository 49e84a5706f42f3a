#include "orchestrator/metrics/metrics_file.hpp"

#include "core/json.hpp"
#include "core/replace.hpp"
#include "core/statistics.hpp"

#include <algorithm>
#include <cmath>

namespace temper::orchestrator {

namespace {

double to_4_places(double value) {
  return rounded(value, 1e4);
}

SpreadFigures figures_of(const Spread& s) {
  return {to_4_places(s.mean()),
          to_4_places(s.min()),
          to_4_places(s.max()),
          to_4_places(s.deviation())};
}

}  // namespace

Result<MetricsFile> MetricsFile::create(const std::filesystem::path& path) {
  TEMPER_TRY(AppendFile file, AppendFile::open(path, 0));
  return MetricsFile(std::move(file));
}

Status MetricsFile::put_in_place(const std::filesystem::path& from,
                                 const std::filesystem::path& to) {
  TEMPER_TRY(file_, temper::put_in_place(std::move(file_), from, to));
  return {};
}

Status MetricsFile::feed(const Record& record, const RunMetrics& metrics) {
  const UpdateHistory& updates = metrics.history();
  if (std::holds_alternative<event::Resumed>(record.event)) {
    // Steps that a rollback keeps still have their lines.
    for (; written_ < updates.count(); ++written_)
      TEMPER_TRY_STATUS(write(updates.kept()[written_ - updates.first()], metrics));
    written_ = updates.count();
    evaluations_ = metrics.evaluations().size();
    last_ = {record.time, metrics.tokens(), metrics.groups()};
    return {};
  }
  while (written_ < updates.count()) {
    const Update& next = updates.kept()[written_ - updates.first()];
    if (written_ + 1 == updates.count() && record.time < next.time + kSettle)
      break;
    if (metrics.evaluating() && *metrics.evaluating() <= next.version)
      break;  // Its figures belong to this line.
    TEMPER_TRY_STATUS(write(next, metrics));
    ++written_;
  }
  return {};
}

Status MetricsFile::close(const RunMetrics& metrics) {
  const UpdateHistory& updates = metrics.history();
  for (; written_ < updates.count(); ++written_)
    TEMPER_TRY_STATUS(write(updates.kept()[written_ - updates.first()], metrics));
  return file_.sync();
}

std::optional<EvaluationFigures> MetricsFile::new_evaluation(PolicyVersion step,
                                                             const RunMetrics& metrics) {
  std::optional<EvaluationFigures> out;
  const auto& all = metrics.evaluations();
  double best = 0;
  for (std::size_t i = 0; i < all.size() && all[i].result.version <= step; ++i) {
    const command::Evaluated& e = all[i].result;
    best = std::max(best, e.pass_1);
    if (i < evaluations_)
      continue;
    evaluations_ = i + 1;
    const Interval interval = wilson_interval(e.pass_1, static_cast<double>(e.problems));
    out = {e.version,
           to_4_places(e.pass_1),
           to_4_places(e.pass_k),
           to_4_places(e.reward),
           e.problems,
           e.samples,
           e.failed,
           to_4_places(e.seconds),
           to_4_places(best),
           to_4_places(interval.low),
           to_4_places(interval.high)};
  }
  return out;
}

Status MetricsFile::write(const Update& update, const RunMetrics& metrics) {
  const double interval = seconds(update.time - last_.time);
  const auto rate = [&](Tokens now, Tokens before) {
    return interval > 0 ? to_4_places(static_cast<double>((now - before).count()) / interval) : 0;
  };
  MetricsLine line;
  line.step = update.version;
  line.time = update.time;
  line.seconds = to_4_places(interval);
  line.reward = update.metrics.reward_mean;
  line.metrics = update.metrics;
  line.rewards = figures_of(update.batch.reward);
  line.length = figures_of(update.batch.length);
  if (update.batch.groups > 0)
    line.equal_groups = to_4_places(static_cast<double>(update.batch.equal_groups) /
                                    static_cast<double>(update.batch.groups));
  line.tokens_per_s = {rate(update.tokens.generated, last_.tokens.generated),
                       rate(update.tokens.trained, last_.tokens.trained),
                       rate(update.tokens.effective, last_.tokens.effective)};
  line.staleness = {to_4_places(update.staleness_mean), update.staleness_max};
  line.queue = update.queue;
  line.resumes = metrics.resumes();
  line.restarts = metrics.restarts().size();
  line.groups = {update.groups.trained - last_.groups.trained,
                 update.groups.filtered - last_.groups.filtered,
                 update.groups.failed - last_.groups.failed,
                 update.groups.evicted - last_.groups.evicted};
  const StateTimes now = metrics.timeline().totals(update.time);
  const StateTimes before = metrics.timeline().totals(last_.time);
  const double whole = interval * static_cast<double>(metrics.timeline().cards().size());
  for (const auto& [state, name] : EnumNames<actors::CardState>::value) {
    const double part = seconds(now[index_of(state)] - before[index_of(state)]);
    line.states[state] = whole > 0 ? to_4_places(part / whole) : 0;
  }
  last_ = {update.time, update.tokens, update.groups};
  line.evaluation = new_evaluation(update.version, metrics);
  if (on_line_)
    on_line_(line);
  return file_.append(to_json(line) + "\n");
}

}  // namespace temper::orchestrator
