// The sources of problems of a run, as the scheduler knows them: their sizes and weights. A part of
// the configuration that is recorded as the first event of a run.
#pragma once

#include "core/describe.hpp"
#include "core/epoch_order.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace temper::orchestrator {

struct ProblemSource {
  std::string name;            ///< Key of `task.sources`; empty: the only source.
  std::string stream;          ///< Of its order.
  std::uint64_t problems = 1;  ///< Number of training problems.
  /// By step; linear between two steps, constant before the first and after the last.
  std::map<std::uint64_t, double> weights{{0, 1.0}};
  /// Number of its problems that are held out for evaluations; 0 also if evaluations have a file of
  /// their own.
  std::uint64_t held_out = 0;

  double weight(std::uint64_t step) const;
};

/// A problem is set aside if the pass rate of its last group is extreme: it is left out for some
/// epochs of its source.
struct SetAsideRule {
  std::optional<double> easy;      ///< From this pass rate, if set.
  std::optional<double> hopeless;  ///< Up to this pass rate, if set.
  double pass = 1;                 ///< Smallest reward of a response that passes.
  std::uint64_t epochs = 1;

  bool applies_to(double pass_rate) const {
    return (easy && pass_rate >= *easy) || (hopeless && pass_rate <= *hopeless);
  }
};

/// The problem of a group.
struct Draw {
  std::uint32_t source = 0;     ///< Index in ProblemPlan::sources.
  std::uint64_t position = 0;   ///< In the order of its source.
  std::uint64_t problem = 0;    ///< Number of the problem in its source.
  std::uint64_t set_aside = 0;  ///< Problems of its source that are set aside after this draw.
  bool operator==(const Draw&) const = default;
};

/// Which of several teachers scores the responses to a problem.
struct TeacherPlan {
  static constexpr std::size_t kMost = 64;

  std::vector<std::string> names;  ///< Keys of `reference.teachers`, sorted.
  /// By source: the teacher of each training problem, as an index in `names`; one entry: that of
  /// all its problems.
  std::vector<std::vector<std::uint8_t>> of_problems;

  /// Requires: the plan has the source and the problem.
  std::uint32_t of(std::uint32_t source, std::uint64_t problem) const {
    const std::vector<std::uint8_t>& teachers = of_problems[source];
    return teachers.size() == 1 ? teachers.front() : teachers[problem];
  }
};

struct ProblemPlan {
  std::vector<ProblemSource> sources;  ///< Empty: the scheduler draws no problems.
  std::uint64_t seed = 0;
  bool shuffle = true;
  SetAsideRule set_aside;
  std::optional<TeacherPlan> teachers{};  ///< None: all responses have the same reference.

  /// Number of teachers that a response is assigned to one of; 0: none.
  std::size_t teacher_count() const { return teachers ? teachers->names.size() : 0; }
  /// Requires: source < sources.size().
  EpochOrder order(std::size_t source) const {
    return {sources[source].stream, seed, sources[source].problems, shuffle};
  }
};

/// The source of each of the first `problems` problems of an evaluation, as an index in
/// ProblemPlan::sources. Empty if there is one source, or if evaluations have a file of
/// their own.
std::vector<std::uint32_t> evaluated_sources(const ProblemPlan& plan, std::uint64_t problems);

/// Names the first source whose problems, or their teachers, are not those of before; empty: all
/// are the same.
std::string problem_difference(const ProblemPlan& before, const ProblemPlan& after);

void describe(auto& v, ProblemSource& s) {
  v.field(1, "name", s.name);
  v.field(2, "stream", s.stream);
  v.field(3, "problems", s.problems);
  v.field(4, "weights", s.weights);
  v.field(5, "held_out", s.held_out);
}
void describe(auto& v, SetAsideRule& r) {
  v.field(1, "easy", r.easy);
  v.field(2, "hopeless", r.hopeless);
  v.field(3, "pass", r.pass);
  v.field(4, "epochs", r.epochs);
}
void describe(auto& v, TeacherPlan& p) {
  v.field(1, "names", p.names);
  v.field(2, "of_problems", p.of_problems);
}
void describe(auto& v, ProblemPlan& p) {
  v.field(1, "sources", p.sources);
  v.field(2, "seed", p.seed);
  v.field(3, "shuffle", p.shuffle);
  v.field(4, "set_aside", p.set_aside);
  v.field(5, "teachers", p.teachers, {.left_out_if_empty = true});
}
void describe(auto& v, Draw& d) {
  v.field(1, "source", d.source);
  v.field(2, "position", d.position);
  v.field(3, "problem", d.problem);
  v.field(4, "set_aside", d.set_aside);
}

}  // namespace temper::orchestrator
