#include "orchestrator/worker/measure/bench.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace temper::orchestrator {
namespace {

/// Decode steps of `running` responses, at contexts from that of a prompt to nearly the longest.
Status measure_decode(Bench& bench, std::int64_t running) {
  TEMPER_TRY(const Tokens longest, bench.prompts().longest_prompt(bench.tokenizer()));
  const std::int64_t room = bench.config().model.context.count() - longest.count() - 4;
  const int repeats = running > 64 ? kRepeats : 3 * kRepeats;
  for (const std::int64_t prefix : {std::int64_t{0}, room / 2, room}) {
    if (prefix < 0)
      continue;
    // Responses end 3 tokens behind the prefix, so the first steps decode all of them, whatever
    // they sample.
    TEMPER_TRY(const auto engine, bench.make_engine(Tokens(prefix + 3)));
    std::map<double, Times> times;  // By cached tokens.
    for (int repeat = -1; repeat < repeats; ++repeat) {
      auto context = static_cast<double>(bench.add(*engine, running, bench.per_group(), prefix));
      while (engine->load() > 0) {
        const bool whole = std::cmp_equal(engine->load(), running);
        const Time begin = bench.clock().now();
        TEMPER_TRY(const rollout::StepResult step, engine->step());
        const double us = micro(bench.clock().now() - begin);
        if (step.kind != rollout::StepKind::Decode || !whole || step.tokens.count() != running)
          continue;
        if (repeat >= 0)  // The first one is a warm-up.
          times[context].add(us);
        context += static_cast<double>(running);
      }
    }
    for (const auto& [context, t] : times)
      bench.note("decode", {static_cast<double>(running), context}, t);
  }
  return {};
}

struct Prefilled {
  double us = 0, rows = 0;
  int steps = 0;
};

/// All prefill steps of `n` responses, which then run to their ends.
Result<Prefilled> generate(Bench& bench,
                           rollout::Engine& engine,
                           std::int64_t n,
                           std::int64_t to_a_prompt) {
  Prefilled out;
  bench.add(engine, n, to_a_prompt);
  while (engine.load() > 0) {
    const Time begin = bench.clock().now();
    TEMPER_TRY(const rollout::StepResult step, engine.step());
    if (step.kind != rollout::StepKind::Prefill)
      continue;
    out.us += micro(bench.clock().now() - begin);
    out.rows += static_cast<double>(step.tokens.count());
    ++out.steps;
  }
  return out;
}

Status measure_prefill(Bench& bench) {
  TEMPER_TRY(const auto engine, bench.make_engine(std::nullopt));
  const std::int64_t slots = bench.config().rollout.concurrency;
  std::map<Work, Times> times;
  for (int repeat = -1; repeat < kRepeats; ++repeat) {
    for (const std::int64_t n : {slots, slots / 2, slots / 8, bench.per_group()}) {
      for (const std::int64_t group : {bench.per_group(), std::int64_t{1}}) {
        if (n < 1)
          continue;
        TEMPER_TRY(const Prefilled done, generate(bench, *engine, n, group));
        const std::int64_t groups = (n + group - 1) / group;
        const auto copies = static_cast<double>(n - groups);
        if (done.steps == 1 && repeat >= 0)
          times[{done.rows, copies}].add(done.us);
      }
    }
  }
  for (const auto& [work, t] : times)
    bench.note("prefill", work, t);
  Times usual, fresh;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    TEMPER_TRY(const Prefilled warm, generate(bench, *engine, slots, bench.per_group()));
    usual.add(warm.us);
    TEMPER_TRY_STATUS(engine->free_kv());
    TEMPER_TRY_STATUS(engine->allocate_kv());
    TEMPER_TRY(const Prefilled cold, generate(bench, *engine, slots, bench.per_group()));
    fresh.add(cold.us);
  }
  bench.note(
      "touch", {static_cast<double>(slots)}, std::max(0.0, fresh.median() - usual.median()), fresh);
  return {};
}

/// As many responses as a few steps of the run have.
Status measure_lengths(Bench& bench) {
  TEMPER_TRY(const auto engine, bench.make_engine(std::nullopt));
  std::vector<double>& lengths = bench.found().lengths;
  lengths.assign(static_cast<std::size_t>(bench.config().sampling.max_new_tokens.count()), 0);
  bench.add(*engine, 256 * bench.per_group(), bench.per_group());
  while (engine->load() > 0) {
    TEMPER_TRY(const rollout::StepResult step, engine->step());
    for (const rollout::Generation& g : step.finished) {
      if (!g.tokens.empty())
        ++lengths[std::min(g.tokens.size(), lengths.size()) - 1];
    }
  }
  return {};
}

}  // namespace

/// Batches from one response to all slots; most batches of a run have a similar size.
Status measure_rollout(Bench& bench) {
  // Pins the thread and sets the number of threads, as in a run.
  TEMPER_TRY([[maybe_unused]] const auto role,
             bench.make_role(actors::RoleKind::Rollout, bench.config()));
  for (std::int64_t n = bench.config().rollout.concurrency; n >= 1; n = n > 64 ? n * 3 / 4 : n / 2)
    TEMPER_TRY_STATUS(measure_decode(bench, n));
  TEMPER_TRY_STATUS(measure_prefill(bench));
  return bench.threads() == 1 ? measure_lengths(bench) : Status();
}

}  // namespace temper::orchestrator
