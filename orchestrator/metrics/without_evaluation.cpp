#include "orchestrator/metrics/without_evaluation.hpp"

#include "orchestrator/scheduler/queue/evaluation_ids.hpp"

#include <algorithm>

namespace temper::orchestrator {
namespace {

bool is_of_evaluation(const Command& command) {
  if (const auto* dispatch = std::get_if<command::Dispatch>(&command))
    return is_evaluation(dispatch->lease);
  if (const auto* judge = std::get_if<command::Judge>(&command))
    return is_evaluation(judge->lease);
  const auto* cancel = std::get_if<command::Cancel>(&command);
  return cancel != nullptr && is_evaluation(cancel->response);
}

bool is_of_evaluation(const event::Generated::Item& item) {
  return is_evaluation(item.lease);
}

}  // namespace

std::optional<Record> without_evaluation(const Record& record) {
  const auto* judged = std::get_if<event::Judged>(&record.event);
  const auto* generated = std::get_if<event::Generated>(&record.event);
  const bool judges = judged != nullptr && is_evaluation(judged->lease);
  const bool generates =
      generated != nullptr &&
      std::ranges::any_of(generated->items, [](const auto& i) { return is_of_evaluation(i); });
  if (!judges && !generates &&
      std::ranges::none_of(record.commands, [](const Command& c) { return is_of_evaluation(c); }))
    return std::nullopt;
  Record rest = record;
  if (judges)
    rest.event = event::DeadlineReached{};
  if (generates)
    std::erase_if(std::get<event::Generated>(rest.event).items,
                  [](const auto& i) { return is_of_evaluation(i); });
  std::erase_if(rest.commands, [](const Command& c) { return is_of_evaluation(c); });
  return rest;
}

}  // namespace temper::orchestrator
