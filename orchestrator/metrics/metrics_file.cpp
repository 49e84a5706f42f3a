#include "orchestrator/metrics/metrics_file.hpp"

#include "core/replace.hpp"
#include "core/statistics.hpp"

#include <algorithm>
#include <cmath>

namespace temper::orchestrator {

namespace {

double to_4_places(double value) {
  return rounded(value, 1e4);
}

}  // namespace

MetricsLine line_of(const Update& update, const RunMetrics& metrics) {
  return {update, metrics.resumes(), metrics.restarts().size(), {}, {}};
}

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
           to_4_places(interval.high),
           e.sources};
  }
  return out;
}

Status MetricsFile::write(const Update& update, const RunMetrics& metrics) {
  MetricsLine line = line_of(update, metrics);
  const StateTimes now = metrics.timeline().totals(update.time);
  const StateTimes before = metrics.timeline().totals(update.before.time);
  const double whole = seconds(update.time - update.before.time) *
                       static_cast<double>(metrics.timeline().cards().size());
  for (const auto& [state, name] : EnumNames<actors::CardState>::value) {
    const double part = seconds(now[index_of(state)] - before[index_of(state)]);
    line.states[state] = whole > 0 ? to_4_places(part / whole) : 0;
  }
  line.evaluation = new_evaluation(update.version, metrics);
  if (on_line_)
    on_line_(line);
  return file_.append(to_json_line(line) + "\n");
}

}  // namespace temper::orchestrator
