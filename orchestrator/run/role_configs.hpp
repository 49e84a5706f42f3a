// The configuration of each role, which a worker gets at registration.
#pragma once

#include "actors/protocol/role_config.hpp"
#include "orchestrator/pipeline/pipeline_config.hpp"
#include "orchestrator/scheduler/state/actor_spec.hpp"

#include <filesystem>

namespace temper::orchestrator {

/// What a worker finds: the weights that the trainer starts from, and shared folders.
struct StartingPoint {
  std::filesystem::path base;        ///< Model folder; empty for `policy: synthetic`.
  std::filesystem::path checkpoint;  ///< Empty: from the base.
  PolicyVersion version;
  actors::TensorPlace tensors{};  ///< Where tensors of responses are.
};

/// The engine that does the work of a role. `teacher`: of a reference, the number of its teacher if
/// there are several.
actors::EngineConfig engine_of(const PipelineConfig& config,
                               actors::RoleKind role,
                               std::optional<std::uint32_t> teacher = {});

actors::RoleConfig role_config(const PipelineConfig& config,
                               const ActorSpec& spec,
                               const StartingPoint& start);

}  // namespace temper::orchestrator
