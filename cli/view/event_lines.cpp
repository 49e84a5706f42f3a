// Events of a run as lines of text.
#include "cli/view/canvas.hpp"
#include "cli/view/render.hpp"
#include "core/statistics.hpp"
#include "orchestrator/record/sentences.hpp"
#include "orchestrator/scheduler/state/config.hpp"

#include <fmt/format.h>

namespace temper::cli {
namespace {

std::string actor_name(const orchestrator::SchedulerConfig& config, ActorId id) {
  return id.value() < config.actors.size() ? config.actors[id.value()].name : "?";
}

}  // namespace

std::vector<std::string> event_lines(const orchestrator::Record& record,
                                     const orchestrator::SchedulerConfig& config) {
  std::vector<std::string> lines;
  const std::string when = fmt::format("{:>8} ", clock_text(record.time.time_since_epoch()));
  if (const auto* saved = std::get_if<orchestrator::event::CheckpointSaved>(&record.event)) {
    lines.push_back(
        when +
        (saved->error.empty()
             ? fmt::format("checkpoint of step {} saved", saved->version)
             : fmt::format("checkpoint of step {} failed: {}", saved->version, saved->error)));
  } else if (const auto* resumed = std::get_if<orchestrator::event::Resumed>(&record.event)) {
    lines.push_back(when + (resumed->sequence == 0
                                ? "starting again from step 0: there is no checkpoint"
                                : "resumed from the last checkpoint"));
    for (const orchestrator::SettingChange& c : resumed->changes)
      lines.push_back(fmt::format("{}with {}: {} -> {}", when, c.key, c.from, c.to));
  } else if (const auto* scaled = std::get_if<orchestrator::event::Scaled>(&record.event)) {
    for (const orchestrator::SettingChange& c : scaled->changes)
      lines.push_back(fmt::format("{}{}: {} -> {}", when, c.key, c.from, c.to));
  } else if (std::holds_alternative<orchestrator::event::StopRequested>(record.event)) {
    lines.push_back(when + "stopping after the current step; a second Ctrl-C stops at once");
  }
  for (const orchestrator::Command& command : record.commands) {
    if (const auto* launch = std::get_if<orchestrator::command::Launch>(&command)) {
      if (launch->reason) {
        lines.push_back(fmt::format("{}restarting {}: {}",
                                    when,
                                    actor_name(config, launch->actor),
                                    sentence(launch->reason, config.actors)));
      }
    } else if (const auto* discard = std::get_if<orchestrator::command::Discard>(&command)) {
      lines.push_back(fmt::format("{}restarting {} in {}: {}",
                                  when,
                                  actor_name(config, discard->actor),
                                  to_text(discard->until - record.time),
                                  sentence(discard->reason, config.actors)));
    } else if (const auto* evaluated = std::get_if<orchestrator::command::Evaluated>(&command)) {
      const Interval interval =
          wilson_interval(evaluated->pass_1, static_cast<double>(evaluated->problems));
      lines.push_back(
          fmt::format("{}step {} on held-out problems: pass@1 {:.3f} [{:.2f}, {:.2f}]{}{}",
                      when,
                      evaluated->version,
                      evaluated->pass_1,
                      interval.low,
                      interval.high,
                      evaluated->samples > 1
                          ? fmt::format(", pass@{} {:.3f}", evaluated->samples, evaluated->pass_k)
                          : std::string(),
                      evaluated->best ? ", the best so far" : ""));
    } else if (const auto* rollback = std::get_if<orchestrator::command::Rollback>(&command)) {
      lines.push_back(
          fmt::format("{}rolling back: {}", when, sentence(rollback->reason, config.actors)));
    }
  }
  return lines;
}

}  // namespace temper::cli
