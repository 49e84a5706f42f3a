// The section `reference`: one model, or several teachers.
#pragma once

#include "orchestrator/pipeline/sections.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace temper::orchestrator {

/// One of several models that score responses, each those to its own problems.
struct TeacherConfig {
  std::string model;
  std::optional<std::int32_t> replicas;
  std::optional<actors::EngineConfig> engine;
  std::vector<CardId> cards;
};

struct ReferenceConfig {
  std::int32_t replicas = 1;
  std::string model;  ///< Folder or package; empty: the base checkpoint of the policy.
  std::map<std::string, TeacherConfig> teachers;
  actors::EngineConfig engine;
  LaunchKind launch = LaunchKind::Local;
};

void describe(auto& v, TeacherConfig& c) {
  v.field(1,
          "model",
          c.model,
          {.doc = "Model of the teacher, as `reference.model`.", .example = "teacher-math"});
  v.field(2,
          "replicas",
          c.replicas,
          {.doc = "Number of its actors. Null: `reference.replicas`.", .min = 1, .max = 4096});
  v.field(3, "engine", c.engine, {.doc = "Its engine. Null: `reference.engine`."});
  v.field(4,
          "cards",
          c.cards,
          {.doc = "Its device numbers, of which each of its actors gets a share. Empty: a share of "
                  "the devices of the reference for each actor."});
}

void describe(auto& v, ReferenceConfig& c) {
  v.field(
      1,
      "replicas",
      c.replicas,
      {.doc = "Number of actors. 0 only without `kl` and `distillation`.", .min = 0, .max = 4096});
  v.field(3,
          "model",
          c.model,
          {.doc = "Model of the reference, such as a teacher for `algorithm.distillation`: a value "
                  "like that of `model.path`, with the policy's tokenizer. Empty: the base."});
  v.field(4,
          "teachers",
          c.teachers,
          {.doc = "Several teachers by name, in place of `model`. Each scores the responses to the "
                  "problems that name it in `task.teacher_column`, or to the sources that do in "
                  "`task.sources.NAME.teacher`."});
  v.field(2, "engine", c.engine, {.doc = "The engine of this role."});
  describe_launch(v, c.launch);
}

}  // namespace temper::orchestrator
