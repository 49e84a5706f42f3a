// The section `evaluation` of a pipeline: when the policy is held against problems that it is never
// trained on, and which (docs/evaluation.md).
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

template <class V>
void describe(V& v, EvaluationSection& c) {
  v.field(1,
          "every",
          c.every,
          {.doc = "Updates between two evaluations, which begin with version 0 and end with the "
                  "last; 0: none."});
  v.field(2,
          "problems",
          c.problems,
          {.doc = "Problems of each evaluation, the same every time: the first of those that the "
                  "task holds out (`task.held_out`), or of `path`.",
           .min = 1,
           .max = 1 << 20});
  v.field(3,
          "path",
          c.path,
          {.doc = "A file of problems of its own, as `task.path`; empty: those held out.",
           .example = "data/test.jsonl"});
  v.field(4, "samples", c.samples, {.doc = "Responses to each problem.", .min = 1, .max = 4096});
  v.field(5,
          "greedy",
          c.greedy,
          {.doc = "Each token is the likeliest one; else it is sampled as in training."});
  v.field(6, "pass", c.pass, {.doc = "A response with this reward or more passes."});
  v.field(7,
          "keep_best",
          c.keep_best,
          {.doc = "A checkpoint is saved of each version that is evaluated, and that of the best "
                  "one is kept as `best/`."});
}

}  // namespace orchestrator
}  // namespace temper
