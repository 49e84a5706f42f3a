// What the problems of a task depend on.
#pragma once

#include "actors/task/task_config.hpp"

namespace temper::actors {

/// The task without the settings that only decide how often a run draws its problems, and who
/// scores them, so that a base checkpoint does not depend on them.
inline TaskConfig same_problems(TaskConfig task) {
  task.set_aside = {};
  task.teacher_column.clear();
  for (auto& [name, source] : task.sources) {
    source.weight = 1;
    source.schedule.clear();
    source.teacher.clear();
  }
  return task;
}

}  // namespace temper::actors
