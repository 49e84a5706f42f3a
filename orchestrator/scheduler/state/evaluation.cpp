#include "orchestrator/scheduler/state/evaluation.hpp"

#include "orchestrator/scheduler/queue/evaluation_ids.hpp"

#include <algorithm>

namespace temper::orchestrator {

Evaluation::Evaluation(const EvaluationPlan& plan, const ProblemPlan& problems) : plan_(plan) {
  for (const ProblemSource& source : problems.sources)
    names_.push_back(source.name);
  source_of_ = evaluated_sources(problems, static_cast<std::uint64_t>(std::max(0, plan_.problems)));
}

void Evaluation::begin(PolicyVersion version, Time now) {
  const LeaseId first = std::max(table_.next_lease(), LeaseId(kFirstEvaluation));
  to_generate_ = std::int64_t{plan_.problems} * plan_.samples;
  table_ = DistQueue(false, plan_.samples, to_generate_, first);
  for (std::uint64_t p = 0; std::cmp_less(p, plan_.problems); ++p)
    table_.add_group(GroupId(kFirstEvaluation + p), version);
  version_ = version;
  began_ = now;
}

bool Evaluation::complete() const {
  return under_way() && std::cmp_equal(table_.trainable().size(), plan_.problems);
}

command::Evaluated Evaluation::result(Time now) const {
  command::Evaluated out;
  out.version = *version_;
  out.began = began_;
  out.seconds = seconds(now - began_);
  out.problems = static_cast<std::uint64_t>(plan_.problems);
  out.samples = static_cast<std::uint64_t>(plan_.samples);
  double reward = 0;
  for (const auto& [id, group] : table_.groups()) {
    std::uint64_t passed = 0;
    for (const Row& row : group.rows) {
      out.failed += row.failed ? 1 : 0;
      reward += row.failed ? 0 : row.reward;
      out.tokens += row.tokens;
      passed += !row.failed && row.reward >= plan_.pass ? 1 : 0;
    }
    out.passed += passed;
    out.solved += passed > 0 ? 1 : 0;
  }
  const double responses = static_cast<double>(out.problems * out.samples);
  out.reward = reward / responses;
  out.pass_1 = static_cast<double>(out.passed) / responses;
  out.pass_k = static_cast<double>(out.solved) / static_cast<double>(out.problems);
  out.sources = sources_of(out);
  return out;
}

std::vector<command::Evaluated::Source> Evaluation::sources_of(
    const command::Evaluated& whole) const {
  if (source_of_.empty())
    return {};
  std::vector<command::Evaluated::Source> sources;
  sources.reserve(names_.size());
  for (const std::string& name : names_)
    sources.push_back({.name = name});
  for (const auto& [id, group] : table_.groups()) {
    command::Evaluated::Source& source = sources[source_of_[problem_of(id)]];
    ++source.problems;
    for (const Row& row : group.rows) {
      source.reward += row.failed ? 0 : row.reward;
      source.passed += !row.failed && row.reward >= plan_.pass ? 1 : 0;
    }
  }
  std::erase_if(sources, [](const auto& source) { return source.problems == 0; });
  for (command::Evaluated::Source& source : sources) {
    const auto responses = static_cast<double>(source.problems * whole.samples);
    source.reward /= responses;
    source.pass_1 = static_cast<double>(source.passed) / responses;
  }
  return sources;
}

}  // namespace temper::orchestrator
