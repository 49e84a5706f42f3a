// samples.jsonl: what was generated, as text that a person reads. One line per response, written
// when its group is done with. An example:
//
//   {"step":12,"group":77,"place":3,"outcome":"trained","reason":"","age":1,"v0":10,"time":4.21,
//    "prompt":"12+34=","answer":"64","response":"64","reward":1,"rewards":{},"length":3,
//    "segments":[{"version":10,"tokens":2,"text":"6"},{"version":11,"tokens":1,"text":"4"}],
//    "tokens":[8,6,1],"logprob":-0.31}
//
// step: the version that the group's update made; of a group that was not trained, the newest one
// then. outcome, reason: of the group; of a response that failed by itself, `failed` and why, and
// its group goes on without it. age: what the bound bounds (docs/semantics.md); null: not trained.
// reward: null where the response was not judged or failed. rewards: the parts of the reward by
// name, where the verifier tells them. logprob: mean over the response's tokens.
//
// Which groups are kept depends on their number alone, so that a resumed run keeps the same; and of
// an update that the share leaves with none, the group that was closest to being kept. A resume
// takes back the lines of what it makes void, so that a response has one line. The file is
// moved to samples.1.jsonl when it has half the budget, replacing the one that was there.
#pragma once

#include "core/files.hpp"
#include "orchestrator/metrics/run_metrics.hpp"
#include "orchestrator/pipeline/watch_sections.hpp"
#include "orchestrator/run/run_outcome.hpp"

#include <functional>
#include <optional>

namespace temper::orchestrator {

inline constexpr std::string_view kSamplesFile = "samples.jsonl";
inline constexpr std::string_view kOlderSamplesFile = "samples.1.jsonl";

struct SampleSegment {
  PolicyVersion version;
  std::int64_t tokens = 0;
  std::string text;
};

struct Sample {
  std::uint64_t step = 0;
  std::uint64_t group = 0;
  std::uint64_t place = 0;  ///< In the group.
  Outcome outcome = Outcome::Trained;
  std::string reason;
  std::optional<std::uint64_t> age;
  std::uint64_t v0 = 0;
  Time time{};
  std::string prompt, answer, response;
  std::optional<double> reward;  ///< None: it was not judged, or failed.
  std::map<std::string, double> rewards;
  std::uint64_t length = 0;
  std::vector<SampleSegment> segments;
  std::vector<std::int32_t> tokens;
  double logprob = 0;
};

template <class V>
void describe(V& v, SampleSegment& s) {
  v.field(1, "version", s.version);
  v.field(2, "tokens", s.tokens);
  v.field(3, "text", s.text);
}
template <class V>
void describe(V& v, Sample& s) {
  v.field(1, "step", s.step);
  v.field(2, "group", s.group);
  v.field(3, "place", s.place);
  v.field(4, "outcome", s.outcome);
  v.field(5, "reason", s.reason);
  v.field(6, "age", s.age);
  v.field(7, "v0", s.v0);
  v.field(8, "time", s.time);
  v.field(9, "prompt", s.prompt);
  v.field(10, "answer", s.answer);
  v.field(11, "response", s.response);
  v.field(12, "reward", s.reward);
  v.field(13, "rewards", s.rewards);
  v.field(14, "length", s.length);
  v.field(15, "segments", s.segments);
  v.field(16, "tokens", s.tokens);
  v.field(17, "logprob", s.logprob);
}

/// On the run's clock: what was done after a checkpoint and before a resume that goes back to it.
struct VoidTime {
  Time after{}, until{};
};

class SamplesFile {
 public:
  /// Goes on with the file that is there. Nothing is written before the first sample.
  SamplesFile(std::filesystem::path run_dir, const SamplesConfig& config)
      : run_dir_(std::move(run_dir)), config_(config) {}

  /// Whether the share alone keeps the responses of this group.
  bool keeps(GroupId group) const;
  /// To be called for every group that is done with, after `metrics` was fed with the record that
  /// said so.
  Status add(const ReleasedGroup& group, const RunMetrics& metrics);
  /// Takes back the lines of these times: what is generated again has lines of its own.
  Status drop(const std::vector<VoidTime>& times);

 private:
  /// Whether an update would have no sample without this group, and it is the one chosen.
  bool stands_for_its_update(const ReleasedGroup& group, const RunMetrics& metrics) const;
  Status append(const std::string& lines);
  Status drop(const std::filesystem::path& path, const std::vector<VoidTime>& times);

  const std::filesystem::path run_dir_;
  const SamplesConfig config_;
  std::optional<AppendFile> file_;
};

/// Every line of samples that a run keeps, the oldest first, until `visit` says that it has enough.
/// Error: the run keeps none.
enum class LineVisit { Continue, Stop };
Status read_sample_lines(const UntrustedFolder& run_dir,
                         const std::function<LineVisit(std::string_view line)>& visit);
/// None: it is no sample (a line that is being written).
std::optional<Sample> parse_sample(std::string_view line);

}  // namespace temper::orchestrator
