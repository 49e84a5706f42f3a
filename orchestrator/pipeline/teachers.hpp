// The teachers of a run, which are its references: their models, engines and numbers of actors, and
// which problems are whose. A run without several teachers has one, without a name.
#pragma once

#include "orchestrator/pipeline/pipeline_config.hpp"
#include "orchestrator/pipeline/rules.hpp"
#include "orchestrator/scheduler/problems/problem_plan.hpp"

#include <optional>
#include <string>
#include <vector>

namespace temper::orchestrator {

struct Teacher {
  std::string name;                     ///< Key of `reference.teachers`; empty: the only one.
  std::optional<std::uint32_t> number;  ///< Index in TeacherPlan::names, if there are several.
  std::string section;                  ///< `reference`, or its own in `reference.teachers`.
  std::string engine_section;           ///< The one whose `engine` it has.
  std::string model;                    ///< Empty: the base.
  actors::EngineConfig engine;
  std::int32_t replicas = 0;
  std::vector<CardId> cards;  ///< Empty: a share of the devices of all references.

  std::string model_key() const { return section + ".model"; }
};

/// Sorted by name.
std::vector<Teacher> teachers_of(const PipelineConfig& config);
/// The first teacher with each engine: those without their own share that of `reference`.
std::vector<Teacher> teachers_by_engine(const PipelineConfig& config);
/// The teacher of this number, or the only one. Requires: there is one.
Teacher teacher_of(const PipelineConfig& config, std::optional<std::uint32_t> number);
/// Actors of all teachers together.
std::int32_t reference_count(const PipelineConfig& config);
/// Share of the responses of the first step that the busiest reference scores, by the weights of
/// the sources; 0 without references, or if a column names the teachers.
double busiest_share(const PipelineConfig& config);

/// Checks the teachers, and that each problem has one of them.
void check_teachers(const PipelineConfig& config, Rules& rules);

/// The teachers of the sources that name one; those of other sources are left empty. None without
/// `reference.teachers`. `sources`: those of the plan.
std::optional<TeacherPlan> teachers_of_sources(const PipelineConfig& config,
                                               const std::vector<ProblemSource>& sources);
/// A teacher that no problem has, if there is one.
std::optional<std::string> unused_teacher(const ProblemPlan& plan);
/// The plan of engines without prompts: each source of the task has one problem. Without sources
/// if the run has no teachers.
ProblemPlan plan_without_prompts(const PipelineConfig& config);

}  // namespace temper::orchestrator
