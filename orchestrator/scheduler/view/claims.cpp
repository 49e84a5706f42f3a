#include "orchestrator/scheduler/view/claims.hpp"

#include "actors/border/values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

namespace temper::orchestrator {
namespace {

using actors::Claim;
using Verdict = std::optional<InvalidClaim>;  ///< None: the claim is possible.

/// More than any response, update or report can count.
constexpr std::int64_t kMostTokens = std::int64_t{1} << 48;

bool is_count(Tokens tokens) {
  return tokens.count() >= 0 && tokens.count() <= kMostTokens;
}

bool is_negative(const actors::SwitchCost& c) {
  return c.duration < Duration(0) || std::min({c.device_before,
                                               c.device_after,
                                               c.host_before,
                                               c.host_after,
                                               c.process_peak,
                                               c.process_after}) < Bytes(0);
}

bool is_negative(const actors::Usage& u) {
  const auto below = [](const actors::MemoryUse& m) {
    return std::min({m.peak, m.predicted, m.capacity}) < Bytes(0);
  };
  const actors::EngineUse engine = u.engine.value_or(actors::EngineUse());
  return u.devices < 0 || std::min(engine.prefill_devices, engine.decode_tokens) < 0 ||
         std::min(engine.prefill, engine.decode) < Duration(0) || !(u.flops.count() >= 0) ||
         !(u.peak.count() >= 0) || below(u.device) || below(u.host) ||
         std::ranges::any_of(u.planes, [](const actors::PlaneUse& p) {
           return p.bytes < Bytes(0) || !(p.bandwidth.count() >= 0);
         });
}

/// The first response that is named twice.
std::optional<ResponseId> repeated(const event::Generated& e) {
  if (e.items.size() < 2)
    return std::nullopt;
  std::vector<ResponseId> responses;
  responses.reserve(e.items.size());
  for (const auto& item : e.items)
    responses.push_back(item.response);
  std::ranges::sort(responses);
  const auto twice = std::ranges::adjacent_find(responses);
  return twice == responses.end() ? std::nullopt : std::optional(*twice);
}

std::string version_text(const std::optional<PolicyVersion>& version) {
  return version ? fmt::format("version {}", *version) : std::string("none");
}

Verdict check_spans(const event::Activity& e, Time from, Time now) {
  for (const actors::Span& span : e.spans) {
    if (span.begin < from || span.end < span.begin || span.end > now) {
      return InvalidClaim{
          Claim::SpansInOrder,
          fmt::format(
              "a span from {} to {} does not lie between {}, until which it was busy, and {} now",
              to_text(span.begin.time_since_epoch()),
              to_text(span.end.time_since_epoch()),
              to_text(from.time_since_epoch()),
              to_text(now.time_since_epoch()))};
    }
    from = span.end;
  }
  if (e.usage && is_negative(*e.usage))
    return InvalidClaim{Claim::NothingNegative, "a negative amount of use"};
  return std::nullopt;
}

/// Of a lease that has ended, only that it was granted is still known.
Verdict check_lease(const RunState& run, LeaseId id, ActorId actor, Task task) {
  const DistQueue& table = run.table_of(id);
  const Lease* lease = table.find(id);
  const bool granted = id >= run.fleet.state(actor).first_lease && id < table.next_lease();
  if (granted && (lease == nullptr || (lease->actor == actor && lease->task == task)))
    return std::nullopt;
  return InvalidClaim{Claim::LeaseIsItsOwn, fmt::format("lease {} is not one of its own", id)};
}

Verdict check_versions(const RunState& run, const event::Generated::Item& item, ActorId actor) {
  const ActorState& a = run.fleet.state(actor);
  // What it commits it may use before its answer is here.
  const std::optional<PolicyVersion> newest = a.committing ? a.staging : a.version;
  const DistQueue& table = run.table_of(item.lease);
  const std::vector<actors::Segment>& before = table.row(item.response)->segments;
  PolicyVersion oldest = table.group(table.group_of(item.response))->dispatched;
  if (!before.empty())
    oldest = std::max(oldest, before.back().version);
  for (const actors::Segment& s : item.segments) {
    if (s.version < oldest || !newest || s.version > *newest) {
      return InvalidClaim{
          Claim::VersionsGoForward,
          fmt::format("response {} has tokens of version {}, where {} is the oldest that "
                      "they can be of, and the engine holds {}",
                      item.response,
                      s.version,
                      oldest,
                      version_text(newest))};
    }
    oldest = s.version;
  }
  return std::nullopt;
}

Verdict check_one_version(const RunState& run, const event::Generated::Item& item) {
  if (!run.config.one_version || item.segments.empty())
    return std::nullopt;
  const std::vector<actors::Segment>& before =
      run.table_of(item.lease).row(item.response)->segments;
  const PolicyVersion first = (before.empty() ? item.segments : before).front().version;
  for (const actors::Segment& s : item.segments) {
    if (s.version != first) {
      return InvalidClaim{
          Claim::OneVersion,
          fmt::format(
              "response {} has tokens of versions {} and {}", item.response, first, s.version)};
    }
  }
  return std::nullopt;
}

/// Other events claim nothing.
template <class E>
Verdict check(const RunState&, const E&) {
  return std::nullopt;
}

Verdict check(const RunState& run, const event::Generated& e) {
  for (const auto& item : e.items) {
    if (auto invalid = find_invalid_claim(run, e.actor, item))
      return invalid;
  }
  if (const auto twice = repeated(e))
    return InvalidClaim{Claim::ResponseIsLeased, fmt::format("response {} occurs twice", *twice)};
  return std::nullopt;
}

Verdict check(const RunState& run, const event::ReferenceScored& e) {
  if (auto invalid = check_lease(run, e.lease, e.actor, Task::Reference))
    return invalid;
  const Lease* lease = run.table_of(e.lease).find(e.lease);
  for (const ResponseId r : e.failed) {
    if (lease != nullptr && std::ranges::find(lease->responses, r) == lease->responses.end())
      return InvalidClaim{Claim::AnswersAll,
                          fmt::format("response {} is not one of lease {}", r, e.lease)};
  }
  return std::nullopt;
}

Verdict check(const RunState& run, const event::Judged& e) {
  if (auto invalid = check_lease(run, e.lease, e.actor, Task::Reward))
    return invalid;
  const Lease* lease = run.table_of(e.lease).find(e.lease);
  if (lease != nullptr && lease->responses.size() != e.items.size()) {
    return InvalidClaim{Claim::AnswersAll,
                        fmt::format("lease {} holds {} responses, {} were judged",
                                    e.lease,
                                    lease->responses.size(),
                                    e.items.size())};
  }
  for (std::size_t i = 0; i < e.items.size(); ++i) {
    if (e.items[i].failed)
      continue;
    if (const Status possible = actors::check_reward(e.items[i].reward); !possible) {
      return InvalidClaim{
          Claim::ValuesArePossible,
          fmt::format("response {} of lease {}: {}", i, e.lease, possible.error().context)};
    }
  }
  return std::nullopt;
}

Verdict check(const RunState& run, const event::Trained& e) {
  if (!run.trainer.training || e.lease != *run.trainer.training)
    return InvalidClaim{Claim::UpdateIsUnderWay,
                        fmt::format("no step is in progress under lease {}", e.lease)};
  if (e.version != next(run.saved.progress.version)) {
    return InvalidClaim{Claim::NextVersion,
                        fmt::format("a step on version {} cannot produce version {}",
                                    run.saved.progress.version,
                                    e.version)};
  }
  std::vector<GroupId> sent = run.trainer.batch;
  std::vector<GroupId> seen = e.groups;
  std::ranges::sort(sent);
  std::ranges::sort(seen);
  if (seen != sent)
    return InvalidClaim{Claim::GroupsOfTheBatch, "it trained groups other than those of the batch"};
  if (!is_count(e.metrics.tokens) || e.metrics.micro_batches < 0)
    return InvalidClaim{Claim::NothingNegative, "a step of a negative size"};
  return std::nullopt;
}

Verdict check(const RunState& run, const event::Prepared& e) {
  return check_lease(run, e.lease, e.actor, Task::Train);
}

Verdict check(const RunState& run, const event::WeightsStaged& e) {
  const ActorState& a = run.fleet.state(e.actor);
  if (a.staging == e.version && !a.staged)
    return std::nullopt;
  return InvalidClaim{Claim::StagingIsAwaited,
                      fmt::format("version {} was staged without a request", e.version)};
}

Verdict check(const RunState& run, const event::WeightsCommitted& e) {
  const ActorState& a = run.fleet.state(e.actor);
  if (a.staging == e.version && a.committing)
    return std::nullopt;
  return InvalidClaim{Claim::CommitIsAwaited,
                      fmt::format("version {} was committed without a request", e.version)};
}

Verdict check(const RunState& run, const event::Switched& e) {
  if (run.fleet.state(e.actor).switching != e.action) {
    return InvalidClaim{Claim::SwitchIsAwaited,
                        fmt::format("{} was reported without a request", name_of(e.action))};
  }
  if (is_negative(e.cost))
    return InvalidClaim{Claim::NothingNegative,
                        fmt::format("a negative cost of {}", name_of(e.action))};
  return std::nullopt;
}

Verdict check(const RunState& run, const event::CheckpointSaved& e) {
  if (run.trainer.saving && e.version == run.saved.progress.version)
    return std::nullopt;
  return InvalidClaim{
      Claim::CheckpointIsAwaited,
      fmt::format("a checkpoint of version {} was saved without a request", e.version)};
}

}  // namespace

actors::Stage stage_of(const RunState& run, ActorId actor) {
  switch (run.fleet.state(actor).life) {
    case Life::Launching:
      return actors::Stage::Starting;
    case Life::Ready:
      return actors::Stage::AtWork;
    case Life::Down:
    case Life::Waiting:
      break;
  }
  return actors::Stage::Down;
}

std::optional<InvalidClaim> find_invalid_claim(const RunState& run,
                                               const Event& reported,
                                               Time now) {
  if (const auto* activity = std::get_if<event::Activity>(&reported))
    return check_spans(*activity, run.fleet.state(activity->actor).busy_until, now);
  return std::visit([&](const auto& e) { return check(run, e); }, reported);
}

std::optional<InvalidClaim> find_invalid_claim(const RunState& run,
                                               ActorId engine,
                                               const event::Generated::Item& item) {
  if (auto invalid = check_lease(run, item.lease, engine, Task::Generate))
    return invalid;
  Tokens sum;
  bool counts = is_count(item.prompt) && is_count(item.tokens);
  for (const actors::Segment& s : item.segments) {
    counts = counts && is_count(s.tokens) && is_count(sum);
    if (counts)
      sum += s.tokens;
  }
  if (!counts) {
    return InvalidClaim{
        Claim::NothingNegative,
        fmt::format("response {} has an impossible number of tokens", item.response)};
  }
  if (sum != item.tokens) {
    return InvalidClaim{Claim::SegmentsAddUp,
                        fmt::format("response {} has {} tokens, its segments {}",
                                    item.response,
                                    item.tokens.count(),
                                    sum.count())};
  }
  const DistQueue& table = run.table_of(item.lease);
  const Lease* lease = table.find(item.lease);
  if (lease == nullptr)
    return std::nullopt;
  if (std::ranges::find(lease->responses, item.response) == lease->responses.end()) {
    return InvalidClaim{
        Claim::ResponseIsLeased,
        fmt::format("response {} is not one of lease {}", item.response, item.lease)};
  }
  if (!table.holds(item.lease, item.response))
    return std::nullopt;
  if (item.finish == actors::FinishReason::Interrupted && !run.withdrawn.contains(item.response) &&
      run.fleet.state(engine).switching != actors::SwitchAction::Interrupt) {
    return InvalidClaim{Claim::HandedBackOnRequest,
                        fmt::format("response {} was returned without a request", item.response)};
  }
  const bool ended =
      item.finish == actors::FinishReason::End || item.finish == actors::FinishReason::Length;
  if (ended && table.row(item.response)->tokens + item.tokens == Tokens(0)) {
    return InvalidClaim{Claim::HasTokens,
                        fmt::format("response {} ended without a token", item.response)};
  }
  if (auto invalid = check_versions(run, item, engine))
    return invalid;
  return check_one_version(run, item);
}

}  // namespace temper::orchestrator
