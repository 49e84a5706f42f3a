// What a live run is started with.
#pragma once

#include "orchestrator/pipeline/resolve.hpp"
#include "orchestrator/scheduler/state/setting_change.hpp"

#include <filesystem>
#include <functional>
#include <vector>

namespace temper::orchestrator {

struct LiveOptions {
  ResolvedPipeline pipeline;
  std::filesystem::path run_dir;
  std::filesystem::path worker;        ///< The program that runs an actor.
  std::filesystem::path base;          ///< Model folder; empty for `policy: synthetic`.
  std::vector<std::uint32_t> cores{};  ///< The cores of its cards, in order; empty: from 0 on.
  bool resume = false;
  std::vector<SettingChange> changes{};  ///< Of the settings, on resume.
  /// Whether this machine can hold these actors, before the run is scaled to them; null: it can.
  std::function<Status(const ResolvedPipeline&)> provide{};
};

}  // namespace temper::orchestrator
