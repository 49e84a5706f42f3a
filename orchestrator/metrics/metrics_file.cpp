#include "orchestrator/metrics/metrics_file.hpp"

#include "core/json.hpp"

#include <algorithm>
#include <cmath>

namespace temper::orchestrator {

template <class V>
void describe(V& v, QueueDepth& q) {
  v.field(1, "generating", q.generating);
  v.field(2, "scoring", q.scoring);
  v.field(3, "ready", q.ready);
  v.field(4, "training", q.training);
}

namespace {

struct Rates {
  double raw = 0, trained = 0, effective = 0;
};
template <class V>
void describe(V& v, Rates& r) {
  v.field(1, "raw", r.raw);
  v.field(2, "trained", r.trained);
  v.field(3, "effective", r.effective);
}

struct Ages {
  double mean = 0;
  std::uint64_t max = 0;
};
template <class V>
void describe(V& v, Ages& a) {
  v.field(1, "mean", a.mean);
  v.field(2, "max", a.max);
}

struct Line {
  PolicyVersion step;
  Time time{};
  double reward = 0;
  actors::UpdateMetrics metrics;
  Rates tokens_per_s;
  Ages staleness;
  QueueDepth queue;
  std::map<actors::CardState, double> states;
  std::uint64_t resumes = 0;
};
template <class V>
void describe(V& v, Line& l) {
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
}

double rounded(double value) {
  return std::round(value * 1e4) / 1e4;
}

}  // namespace

Result<MetricsFile> MetricsFile::create(const std::filesystem::path& path) {
  TEMPER_TRY(AppendFile file, AppendFile::open(path, 0));
  return MetricsFile(std::move(file));
}

Status MetricsFile::feed(const Record& record, const RunMetrics& metrics) {
  const UpdateHistory& updates = metrics.history();
  if (std::holds_alternative<event::Resumed>(record.event)) {
    written_ = updates.count();
    last_ = {record.time, metrics.tokens()};
    return {};
  }
  while (written_ < updates.count()) {
    const Update& next = updates.kept()[written_ - updates.first()];
    if (written_ + 1 == updates.count() && record.time < next.time + kSettle)
      break;
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

Status MetricsFile::write(const Update& update, const RunMetrics& metrics) {
  const double interval = seconds(update.time - last_.time);
  const auto rate = [&](Tokens now, Tokens before) {
    return interval > 0 ? rounded(static_cast<double>((now - before).count()) / interval) : 0;
  };
  Line line;
  line.step = update.version;
  line.time = update.time;
  line.reward = update.metrics.reward_mean;
  line.metrics = update.metrics;
  line.tokens_per_s = {rate(update.tokens.generated, last_.tokens.generated),
                       rate(update.tokens.trained, last_.tokens.trained),
                       rate(update.tokens.effective, last_.tokens.effective)};
  line.staleness = {rounded(update.staleness_mean), update.staleness_max};
  line.queue = update.queue;
  line.resumes = metrics.resumes();
  const StateTimes now = metrics.timeline().totals(update.time);
  const StateTimes before = metrics.timeline().totals(last_.time);
  const double whole = interval * static_cast<double>(metrics.timeline().cards().size());
  for (const auto& [state, name] : EnumNames<actors::CardState>::value) {
    const double part = seconds(now[index_of(state)] - before[index_of(state)]);
    line.states[state] = whole > 0 ? rounded(part / whole) : 0;
  }
  last_ = {update.time, update.tokens};
  return file_.append(to_json(line) + "\n");
}

}  // namespace temper::orchestrator
