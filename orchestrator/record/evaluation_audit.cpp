#include "orchestrator/record/evaluation_audit.hpp"

#include "orchestrator/scheduler/queue/evaluation_ids.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace temper::orchestrator {

void EvaluationAudit::forget(ActorId actor) {
  std::erase_if(leases_, [&](const auto& l) { return l.second.actor == actor; });
}

const EvaluationAudit::Lease* EvaluationAudit::granted(LeaseId lease, ActorId actor) const {
  const auto it = leases_.find(lease);
  return it == leases_.end() || it->second.actor != actor ? nullptr : &it->second;
}

EvaluationAudit::Violations EvaluationAudit::dispatch(const command::Dispatch& c,
                                                      std::uint64_t published) {
  Violations out;
  if (version_ != c.version)
    cancel();  // The previous evaluation was abandoned.
  version_ = c.version;
  if (plan_.every == 0)
    out.push_back("an evaluation is dispatched, though the run has no evaluations");
  if (c.version.value() > published)
    out.push_back("an unpublished version is evaluated");
  const auto samples = static_cast<std::uint64_t>(std::max(1, plan_.samples));
  for (const ResponseId r : c.responses) {
    if (r.value() / samples != c.group.value() ||
        std::cmp_greater_equal(problem_of(c.group), plan_.problems))
      out.push_back(fmt::format("response {} belongs to no problem of the evaluation", r));
    if (responses_[r].generated)
      out.push_back(fmt::format("response {} is evaluated twice", r));
  }
  leases_[c.lease] = {c.actor, c.responses};
  return out;
}

EvaluationAudit::Violations EvaluationAudit::generated(ActorId actor,
                                                       const event::Generated::Item& item) {
  const Lease* lease = granted(item.lease, actor);
  if (lease == nullptr ||
      std::ranges::find(lease->responses, item.response) == lease->responses.end())
    return {};
  Violations out;
  Response& r = responses_[item.response];
  if (std::ranges::any_of(item.segments, [&](const auto& s) { return s.version != version_; })) {
    out.push_back(fmt::format("response {} of an evaluation has tokens of another version than {}",
                              item.response,
                              version_));
  }
  r.tokens += item.tokens;
  const bool ended =
      item.finish == actors::FinishReason::End || item.finish == actors::FinishReason::Length;
  if (ended && r.tokens == Tokens(0))
    out.push_back(fmt::format("response {} of an evaluation ended without a token", item.response));
  r.generated = item.finish != actors::FinishReason::Interrupted;
  r.failed = r.failed || item.finish == actors::FinishReason::Failed;
  std::erase(leases_[item.lease].responses, item.response);
  return out;
}

EvaluationAudit::Violations EvaluationAudit::judge(const command::Judge& c) {
  Violations out;
  for (const ResponseId r : c.responses) {
    if (!responses_[r].generated)
      out.push_back(
          fmt::format("response {} of an evaluation is judged before it is generated", r));
  }
  leases_[c.lease] = {c.actor, c.responses};
  return out;
}

EvaluationAudit::Violations EvaluationAudit::judged(const event::Judged& e) {
  const Lease* lease = granted(e.lease, e.actor);
  if (lease == nullptr)
    return {};
  Violations out;
  for (std::size_t i = 0; i < lease->responses.size() && i < e.items.size(); ++i) {
    Response& r = responses_[lease->responses[i]];
    if (r.judged)
      out.push_back(fmt::format("response {} is judged twice", lease->responses[i]));
    r.judged = true;
    r.reward = e.items[i].reward;
    r.failed = r.failed || e.items[i].failed;
  }
  leases_.erase(e.lease);
  return out;
}

EvaluationAudit::Violations EvaluationAudit::evaluated(const command::Evaluated& c) {
  Violations out;
  if (c.version != version_)
    out.push_back(
        fmt::format("version {} was evaluated, but recorded as version {}", version_, c.version));
  std::uint64_t failed = 0, passed = 0;
  double reward = 0;
  std::map<std::uint64_t, std::uint64_t> passed_of;
  const auto samples = static_cast<std::uint64_t>(std::max(1, plan_.samples));
  for (const auto& [id, r] : responses_) {
    if (!r.generated || (!r.judged && !r.failed))
      out.push_back(fmt::format("an evaluation ends before response {} is judged", id));
    failed += r.failed ? 1 : 0;
    reward += r.failed ? 0 : r.reward;
    const bool passes = !r.failed && r.reward >= plan_.pass;
    passed += passes ? 1 : 0;
    passed_of[id.value() / samples] += passes ? 1 : 0;
  }
  const auto solved = static_cast<std::uint64_t>(
      std::ranges::count_if(passed_of, [](const auto& p) { return p.second > 0; }));
  const double all = static_cast<double>(plan_.problems) * static_cast<double>(plan_.samples);
  if (std::cmp_not_equal(responses_.size(), std::int64_t{plan_.problems} * plan_.samples)) {
    out.push_back(fmt::format("an evaluation has {} responses, expected {} problems with {} each",
                              responses_.size(),
                              plan_.problems,
                              plan_.samples));
  }
  if (c.failed != failed || c.passed != passed || c.solved != solved || c.reward != reward / all ||
      c.pass_1 != static_cast<double>(passed) / all ||
      c.pass_k != static_cast<double>(solved) / static_cast<double>(plan_.problems)) {
    out.push_back(
        fmt::format("the evaluation of version {} reports {} passed, {} solved, {} failed, mean "
                    "reward {}; from its "
                    "rewards, expected {}, {}, {}, {}",
                    c.version,
                    c.passed,
                    c.solved,
                    c.failed,
                    c.reward,
                    passed,
                    solved,
                    failed,
                    reward / all));
  }
  std::ranges::move(sources_of(c), std::back_inserter(out));
  const bool better = std::ranges::all_of(
      evaluated_, [&](const EvaluatedVersion& e) { return e.pass_1 < c.pass_1; });
  if (c.best != better)
    out.push_back(
        fmt::format("version {} is {}marked as the best", c.version, c.best ? "" : "not "));
  evaluated_.push_back({c.version.value(), c.pass_1});
  cancel();
  return out;
}

/// What the figures of the sources miss of those that follow from the rewards.
EvaluationAudit::Violations EvaluationAudit::sources_of(const command::Evaluated& c) const {
  struct Sums {
    std::uint64_t responses = 0, passed = 0;
    double reward = 0;
  };
  const auto samples = static_cast<std::uint64_t>(std::max(1, plan_.samples));
  const auto sources = evaluated_sources(problems_, c.problems);
  std::map<std::string, Sums> expected;
  for (const auto& [id, r] : responses_) {
    const std::uint64_t problem = problem_of(GroupId(id.value() / samples));
    if (problem >= sources.size())
      continue;
    Sums& sums = expected[problems_.sources[sources[problem]].name];
    ++sums.responses;
    sums.passed += !r.failed && r.reward >= plan_.pass ? 1 : 0;
    sums.reward += r.failed ? 0 : r.reward;
  }
  Violations out;
  for (const command::Evaluated::Source& s : c.sources) {
    const Sums sums = expected[s.name];
    const auto all = static_cast<double>(sums.responses);
    if (s.problems * samples != sums.responses || s.passed != sums.passed ||
        s.reward != sums.reward / all || s.pass_1 != static_cast<double>(sums.passed) / all) {
      out.push_back(fmt::format(
          "the evaluation of version {} reports {} problems of the source `{}`, with {} passed and "
          "mean reward {}; from its rewards, expected {}, {}, {}",
          c.version,
          s.problems,
          s.name,
          s.passed,
          s.reward,
          sums.responses / samples,
          sums.passed,
          sums.reward / all));
    }
  }
  if (c.sources.size() != expected.size()) {
    out.push_back(fmt::format("the evaluation of version {} reports {} sources, expected {}",
                              c.version,
                              c.sources.size(),
                              expected.size()));
  }
  return out;
}

EvaluationAudit::Violations EvaluationAudit::finish(std::uint64_t steps) const {
  if (plan_.every == 0 || (!evaluated_.empty() && evaluated_.back().version == steps))
    return {};
  return {"the run finished with success before its last version was evaluated"};
}

}  // namespace temper::orchestrator
