#include "actors/protocol/weights.hpp"
#include "actors/protocol/work.hpp"
#include "orchestrator/worker/measure/bench.hpp"

#include <algorithm>

namespace temper::orchestrator {
namespace {

using actors::CardState;

struct Shape {
  std::int64_t groups, responses, tokens;
};

actors::Train train_message(const Bench& bench, const Shape& shape, PolicyVersion step) {
  actors::Train work;
  work.lease = LeaseId(step.value() + 1);
  work.certificate.step = step;
  work.certificate.bound = step.value();
  for (AnsweredPrompt& a : answered_prompts(bench, shape.groups, shape.responses, shape.tokens)) {
    if (work.certificate.groups.empty() || work.certificate.groups.back().group != a.group)
      work.certificate.groups.push_back({a.group, step, {}});
    actors::Train::Item item;
    item.group = a.group;
    item.prompt = std::move(a.prompt);
    item.response = std::move(a.response);
    item.logprobs.assign(static_cast<std::size_t>(shape.tokens), -2.6F);
    if (bench.config().reference.replicas > 0)
      item.reference = item.logprobs;
    if (bench.config().algorithm.distillation_top_k > 0)
      item.top = top_tokens(bench, item.response.size());
    item.reward = static_cast<double>(work.items.size() % 2);
    item.first_version = step;
    work.items.push_back(std::move(item));
  }
  return work;
}

Work work_of(const Bench& bench, const Shape& shape, std::int32_t minibatches) {
  std::int64_t rows = shape.groups * shape.responses * (shape.tokens - 1);
  for (std::int64_t g = 0; g < shape.groups; ++g)
    rows += std::ssize(bench.prompt(static_cast<std::uint64_t>(g)));
  return {static_cast<double>(minibatches),
          static_cast<double>(rows),
          static_cast<double>(shape.groups * shape.responses * shape.tokens)};
}

/// A trainer that takes steps on batches of given shapes.
class Training {
 public:
  Training(Bench& bench, std::int32_t minibatches) : bench_(bench), config_(bench.config()) {
    config_.algorithm.minibatches = minibatches;
    config_.algorithm.learning_rate = 1e-7;  // The policy stays nearly the same.
  }

  /// Durations of the steps, and of the publication after each, in microseconds.
  struct Spans {
    std::vector<double> train, sync;
  };
  enum class Switches { None, Between };
  Result<Spans> run(const std::vector<Shape>& shapes, Switches switches) {
    TEMPER_TRY(auto made, bench_.make_role(actors::RoleKind::Trainer, config_));
    MeasuredRole role(std::move(made));
    TEMPER_TRY_STATUS(role.start());
    PolicyVersion version;
    for (const Shape& shape : shapes) {
      for (int repeat = 0; repeat < kRepeats + 1; ++repeat) {
        if (switches == Switches::Between) {
          TEMPER_TRY_STATUS(role.tell(actors::Switch{actors::SwitchAction::OffloadOptimizer}));
          TEMPER_TRY_STATUS(role.tell(actors::Switch{actors::SwitchAction::OnloadOptimizer}));
        }
        TEMPER_TRY_STATUS(role.tell(train_message(bench_, shape, version)));
        version = next(version);
      }
    }
    TEMPER_TRY(const auto spans, role.stop());
    Spans out;
    for (const actors::Span& span : spans) {
      if (span.state == CardState::Train)
        out.train.push_back(micro(span.end - span.begin));
      if (span.state == CardState::WeightSync)
        out.sync.push_back(micro(span.end - span.begin));
    }
    return out;
  }

 private:
  Bench& bench_;
  PipelineConfig config_;
};

Times times_of(const std::vector<double>& all, std::size_t begin, std::size_t end) {
  Times times;
  for (std::size_t i = begin; i < std::min(end, all.size()); ++i)
    times.add(all[i]);
  return times;
}

}  // namespace

Status measure_trainer(Bench& bench) {
  const trainer::AlgorithmConfig& a = bench.config().algorithm;
  const std::int64_t groups = a.groups_per_update, responses = a.responses_per_group;
  const std::int64_t usual = bench.usual_tokens();
  const std::int64_t longest = bench.config().sampling.max_new_tokens.count();
  const auto part = [](std::int64_t n, std::int64_t of) {
    return std::max<std::int64_t>(1, n / of);
  };
  // First, as in a run, because the first allocations affect the time of later ones.
  const std::vector<Shape> shapes{{groups, responses, usual},
                                  {part(groups, 2), responses, usual},
                                  {groups, responses, part(usual, 2)},
                                  {groups, part(responses, 2), usual},
                                  {part(groups, 8), responses, usual},
                                  {groups, responses, longest}};
  const auto repeats = static_cast<std::size_t>(kRepeats) + 1;
  Training training(bench, a.minibatches);
  TEMPER_TRY(const auto spans, training.run(shapes, Training::Switches::None));
  for (std::size_t s = 0; s < shapes.size(); ++s) {
    const Times times = times_of(spans.train, s * repeats + 1, (s + 1) * repeats);
    bench.note("update", work_of(bench, shapes[s], a.minibatches), times);
  }
  const double usual_us = times_of(spans.train, 1, repeats).median();
  if (bench.threads() == 1) {
    bench.note("update_first", {}, std::max(0.0, spans.train.front() - usual_us), {});
    bench.note("export", {}, times_of(spans.sync, 1, repeats));
  }
  const std::int32_t more = a.minibatches == 1 ? 4 : 1;
  TEMPER_TRY(const auto other,
             Training(bench, more).run({shapes.front()}, Training::Switches::None));
  bench.note("update", work_of(bench, shapes.front(), more), times_of(other.train, 1, repeats));

  TEMPER_TRY(const auto switched, training.run({shapes.front()}, Training::Switches::Between));
  const Times resumed = times_of(switched.train, 1, repeats);
  bench.note("update_resumed", {}, std::max(0.0, resumed.median() - usual_us), resumed);
  return {};
}

Status measure_reference(Bench& bench) {
  TEMPER_TRY(auto made, bench.make_role(actors::RoleKind::Reference, bench.config()));
  MeasuredRole role(std::move(made));
  const std::int64_t most = std::max<std::int64_t>(bench.per_group(), 256);
  const std::vector<std::int64_t> sizes{most, most / 2, most / 4, bench.per_group(), 1};
  std::vector<Work> works;
  for (const std::int64_t n : sizes) {
    const auto answered = answered_prompts(bench,
                                           (n + bench.per_group() - 1) / bench.per_group(),
                                           bench.per_group(),
                                           bench.usual_tokens());
    double rows = 0;
    actors::ScoreReference work;
    for (std::int64_t i = 0; i < n; ++i) {
      const AnsweredPrompt& a = answered[static_cast<std::size_t>(i)];
      rows += static_cast<double>(a.response.size()) - 1;
      rows += i % bench.per_group() == 0 ? static_cast<double>(a.prompt.size()) : 0;
      work.items.push_back({a.prompt, a.response});
    }
    works.push_back({rows});
    for (int repeat = 0; repeat < kRepeats + 1; ++repeat) {
      work.lease = LeaseId(static_cast<std::uint64_t>(repeat) + 1);
      TEMPER_TRY_STATUS(role.tell(work));
      // A pause, because adjacent spans of one state are merged.
      const Time until = bench.clock().now() + std::chrono::microseconds(200);
      while (bench.clock().now() < until) {
      }
    }
  }
  TEMPER_TRY(const auto spans, role.stop());
  std::vector<double> us;
  us.reserve(spans.size());
  for (const actors::Span& span : spans)
    us.push_back(micro(span.end - span.begin));
  const auto repeats = static_cast<std::size_t>(kRepeats) + 1;
  for (std::size_t s = 0; s < sizes.size(); ++s)
    bench.note("reference", works[s], times_of(us, s * repeats + 1, (s + 1) * repeats));
  if (bench.threads() == 1 && !us.empty()) {
    bench.note(
        "reference_first", {}, std::max(0.0, us.front() - times_of(us, 1, repeats).median()), {});
  }
  return {};
}

}  // namespace temper::orchestrator
