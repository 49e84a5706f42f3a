#include "orchestrator/scheduler/state/events.hpp"

#include "orchestrator/scheduler/state/config.hpp"

namespace temper::orchestrator {

const SchedulerConfig* config_in(const Event& event) {
  if (const auto* started = std::get_if<event::Started>(&event))
    return &*started->config;
  const auto* resumed = std::get_if<event::Resumed>(&event);
  return resumed != nullptr && resumed->config ? &**resumed->config : nullptr;
}

const std::vector<ActorSpec>* actors_in(const Event& event) {
  if (const auto* scaled = std::get_if<event::Scaled>(&event))
    return &scaled->actors;
  const SchedulerConfig* config = config_in(event);
  return config == nullptr ? nullptr : &config->actors;
}

}  // namespace temper::orchestrator
