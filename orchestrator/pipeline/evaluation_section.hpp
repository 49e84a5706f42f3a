// The section `evaluation`: when and on which held-out problems the policy is evaluated
// (docs/how-to/evaluate.md).
#pragma once

#include "core/describe.hpp"

#include <string>

namespace temper {
namespace orchestrator {

struct EvaluationSection {
  std::uint64_t every = 0;
  std::int32_t problems = 100;
  std::string path;
  std::int32_t samples = 1;
  bool greedy = true;
  double pass = 1;
  bool keep_best = true;
};

void describe(auto& v, EvaluationSection& c) {
  v.field(1,
          "every",
          c.every,
          {.doc = "Steps between two evaluations. Version 0 and the last version are always among "
                  "the evaluated ones. 0: no evaluation."});
  v.field(2,
          "problems",
          c.problems,
          {.doc = "Number of problems per evaluation, the same ones each time: the first held-out "
                  "problems of the task (`task.held_out`), or the first of `path`.",
           .min = 1,
           .max = 1 << 20});
  v.field(3,
          "path",
          c.path,
          {.doc = "File of evaluation problems, in the format of `task.path`. Empty: the problems "
                  "that the task holds out.",
           .example = "data/test.jsonl"});
  v.field(4,
          "samples",
          c.samples,
          {.doc = "Responses per problem. More than 1 allows pass@k.", .min = 1, .max = 4096});
  v.field(5,
          "greedy",
          c.greedy,
          {.doc = "Take the most likely token at each position. If false, sample as in training."});
  v.field(6, "pass", c.pass, {.doc = "Smallest reward with which a response passes."});
  v.field(
      7,
      "keep_best",
      c.keep_best,
      {.doc = "Save a checkpoint of each evaluated version, and keep the best one as `best/`."});
}

}  // namespace orchestrator
}  // namespace temper
