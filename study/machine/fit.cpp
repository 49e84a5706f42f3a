#include "study/machine/fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace temper::study {
namespace {

constexpr int kSweeps = 20000;
constexpr double kSettled = 1e-12;

/// Samples of one kind and number of threads.
class SampleSet {
 public:
  SampleSet(const orchestrator::Timings& all,
            std::string_view kind,
            std::optional<std::int32_t> threads) {
    for (const orchestrator::Timing& s : all.timings) {
      if (s.kind == kind && (!threads || s.threads == *threads))
        rows.push_back(&s);
    }
  }
  bool empty() const { return rows.empty(); }
  double us() const { return rows.empty() ? 0 : rows.front()->us; }
  std::int64_t repeats() const {
    std::int64_t sum = 0;
    for (const orchestrator::Timing* s : rows)
      sum += s->repeats;
    return sum;
  }
  double spread() const {
    double sum = 0;
    for (const orchestrator::Timing* s : rows)
      sum += s->spread / static_cast<double>(rows.size());
    return sum;
  }
  /// Observations with these counts, after a constant one.
  LeastSquares fit() const {
    std::vector<Observation> observations;
    for (const orchestrator::Timing* s : rows) {
      Observation o{{1.0}, s->us};
      o.counts.insert(o.counts.end(), s->work.begin(), s->work.end());
      if (o.value > 0)
        observations.push_back(std::move(o));
    }
    return fit_positive(observations);
  }
  std::vector<const orchestrator::Timing*> rows;
};

Error missing(std::string_view kind) {
  return invalid_input(
      fmt::format("no sample of kind `{}` was measured; expected at least one", kind));
}

/// Time of each batch with nothing cached, and one cost per cached token for all.
std::vector<DecodeTimes> fit_decode(const SampleSet& decode, double& error) {
  std::set<double> sizes;
  for (const orchestrator::Timing* s : decode.rows)
    sizes.insert(s->work.at(0));
  std::vector<Observation> observations;
  for (const orchestrator::Timing* s : decode.rows) {
    Observation o{std::vector<double>(sizes.size() + 1), s->us};
    o.counts[static_cast<std::size_t>(std::distance(sizes.begin(), sizes.find(s->work.at(0))))] = 1;
    o.counts.back() = s->work.at(1);
    observations.push_back(std::move(o));
  }
  const LeastSquares fit = fit_positive(observations);
  error = fit.error;
  std::vector<DecodeTimes> out;
  out.reserve(sizes.size());
  for (const double size : sizes) {
    out.push_back(
        {static_cast<std::int32_t>(size), fit.constants[out.size()], fit.constants.back() * 1e3});
  }
  return out;
}

class Fitter {
 public:
  Fitter(const orchestrator::Timings& timings, MachineModel& out) : timings_(timings), out_(out) {}

  Status run() {
    std::set<std::int32_t> threads;
    for (const orchestrator::Timing& s : timings_.timings) {
      if (s.kind == "decode")
        threads.insert(s.threads);
    }
    if (threads.empty())
      return missing("decode");
    for (const std::int32_t n : threads)
      TEMPER_TRY_STATUS(engine(n));
    TEMPER_TRY_STATUS(singles());
    return lengths();
  }

 private:
  SampleSet of(std::string_view kind, std::optional<std::int32_t> threads = std::nullopt) const {
    return {timings_, kind, threads};
  }
  void record(std::string constants, std::string how, const SampleSet& from, double error) {
    out_.fits.push_back(
        {std::move(constants), std::move(how), from.repeats(), from.spread(), error});
  }

  Status engine(std::int32_t threads) {
    EngineTimes times;
    times.threads = threads;
    const auto name = [&](const char* what) {
      return fmt::format("engines of {} thread(s): {}", threads, what);
    };
    double error = 0;
    const SampleSet decode = of("decode", threads);
    times.decode = fit_decode(decode, error);
    record(name("decode"), "decode steps of whole batches at three contexts", decode, error);

    const SampleSet prefill = of("prefill", threads), touch = of("touch", threads);
    if (prefill.empty())
      return missing("prefill");
    const LeastSquares p = prefill.fit();
    times.prefill = {p.constants[0], p.constants[1], p.constants[2], 0};
    record(name("prefill"), "prefill steps by prompts and responses to each", prefill, p.error);
    if (!touch.empty())
      times.prefill.touch_us = touch.us() / std::max(1.0, touch.rows.front()->work.at(0));

    const SampleSet update = of("update", threads);
    if (update.empty())
      return missing("update");
    const LeastSquares u = update.fit();
    times.update = {u.constants[0],
                    u.constants[1],
                    u.constants[2],
                    u.constants[3],
                    of("update_first").us(),
                    of("update_resumed", threads).us()};
    record(
        name("update"), "updates by groups, responses, their tokens, minibatches", update, u.error);

    const SampleSet reference = of("reference", threads);
    if (reference.empty())
      return missing("reference");
    const LeastSquares r = reference.fit();
    times.reference = {r.constants[0], r.constants[1], of("reference_first").us()};
    record(name("reference"), "reference passes by responses", reference, r.error);
    out_.engines.push_back(std::move(times));
    return {};
  }

  Status singles() {
    const std::pair<const char*, double*> medians[] = {
        {"export", &out_.weights.export_us},
        {"stage", &out_.weights.stage_us},
        {"commit", &out_.weights.commit_us},
        {"save", &out_.weights.save_us},
        {"interrupt", &out_.switches.interrupt_us},
        {"free_kv", &out_.switches.free_kv_us},
        {"free_weights", &out_.switches.free_weights_us},
        {"allocate_kv", &out_.switches.allocate_kv_us},
        {"offload", &out_.switches.offload_us},
        {"onload", &out_.switches.onload_us},
        {"reference_load", &out_.switches.reference_load_us}};
    for (const auto& [kind, constant] : medians) {
      const SampleSet chosen = of(kind);
      if (chosen.empty())
        return missing(kind);
      *constant = chosen.us();
      record(kind, "median of direct timings", chosen, 0);
    }
    const std::pair<const char*, double*> ratios[] = {
        {"decode_slowdown", &out_.slowdowns.decode},
        {"update_slowdown", &out_.slowdowns.update},
        {"reference_slowdown", &out_.slowdowns.reference}};
    double sum = 0;
    for (const auto& [kind, constant] : ratios) {
      const SampleSet chosen = of(kind);
      // Work elsewhere makes nothing faster: a ratio below one is noise.
      *constant = chosen.empty() ? 1 : std::max(1.0, chosen.us());
      sum += *constant;
      if (!chosen.empty())
        record(kind, "median beside work on every other core, over that alone", chosen, 0);
    }
    out_.slowdowns.other = sum / std::size(ratios);
    const SampleSet reward = of("reward");
    if (reward.empty())
      return missing("reward");
    const LeastSquares r = reward.fit();
    out_.reward = {r.constants[0], r.constants[1]};
    record("reward", "the verifier by responses", reward, r.error);
    return {};
  }

  Status lengths() {
    actors::LengthConfig& c = out_.response;
    c.kind = actors::LengthKind::Histogram;
    c.weights = timings_.lengths;
    c.width = Tokens(1);
    c.cap = Tokens(std::ssize(c.weights));
    double responses = 0, tokens = 0;
    for (std::size_t i = 0; i < c.weights.size(); ++i) {
      responses += c.weights[i];
      tokens += c.weights[i] * static_cast<double>(i + 1);
    }
    if (responses == 0)
      return missing("lengths");
    c.mean = tokens / responses;
    out_.fits.push_back({"response",
                         "responses of the base checkpoint",
                         static_cast<std::int64_t>(responses),
                         0,
                         0});
    return {};
  }

  const orchestrator::Timings& timings_;
  MachineModel& out_;
};

}  // namespace

/// Coordinate descent on the normal equations, which are small because constants are few.
LeastSquares fit_positive(std::span<const Observation> observations) {
  LeastSquares fit;
  if (observations.empty())
    return fit;
  const std::size_t n = observations.front().counts.size();
  std::vector<double> scale(n, 0), gram(n * n, 0), right(n, 0);
  for (const Observation& o : observations) {
    for (std::size_t i = 0; i < n; ++i)
      scale[i] += std::abs(o.counts[i] / o.value);
  }
  const auto count = [&](const Observation& o, std::size_t i) {
    return scale[i] > 0 ? o.counts[i] / o.value / scale[i] : 0.0;
  };
  for (const Observation& o : observations) {
    for (std::size_t i = 0; i < n; ++i) {
      right[i] += count(o, i);
      for (std::size_t j = 0; j < n; ++j)
        gram[i * n + j] += count(o, i) * count(o, j);
    }
  }
  std::vector<double> x(n, 0);
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    double moved = 0, size = 0;
    for (std::size_t i = 0; i < n; ++i) {
      if (gram[i * n + i] <= 0)
        continue;
      double gradient = right[i];
      for (std::size_t j = 0; j < n; ++j)
        gradient -= gram[i * n + j] * x[j];
      const double next = std::max(0.0, x[i] + gradient / gram[i * n + i]);
      moved += std::abs(next - x[i]);
      size += std::abs(next);
      x[i] = next;
    }
    if (moved <= kSettled * size)
      break;
  }
  fit.constants.resize(n);
  for (std::size_t i = 0; i < n; ++i)
    fit.constants[i] = scale[i] > 0 ? x[i] / scale[i] : 0;
  for (const Observation& o : observations) {
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i)
      sum += o.counts[i] * fit.constants[i];
    fit.error += std::abs(sum / o.value - 1) / static_cast<double>(observations.size());
  }
  return fit;
}

Status fit_engines(const orchestrator::Timings& timings, MachineModel& calibration) {
  return Fitter(timings, calibration).run();
}

void fit_messages(std::span<const MessageCounts> counts, MachineModel& calibration) {
  ProcessTimes& p = calibration.processes;
  const std::pair<const char*, MessageTimes*> processes[] = {{"orchestrator", &p.orchestrator},
                                                             {"rollout", &p.rollout},
                                                             {"reference", &p.reference},
                                                             {"reward", &p.reward},
                                                             {"trainer", &p.trainer}};
  for (const auto& [name, times] : processes) {
    std::vector<Observation> observations;
    for (const MessageCounts& c : counts) {
      if (c.process == name && c.cpu_us > 0)
        observations.push_back({{c.messages, c.responses}, c.cpu_us});
    }
    const LeastSquares fit = fit_positive(observations);
    if (fit.constants.empty())
      continue;
    *times = {fit.constants[0], fit.constants[1]};
    calibration.fits.push_back({fmt::format("processes.{}", name),
                                "CPU time in runs with other settings, whose engines only wait",
                                std::ssize(observations),
                                0,
                                fit.error});
  }
}

}  // namespace temper::study
