// samples.jsonl: generated responses as readable text. One line per response, written when its
// group is finished. Example:
//
//   {"step":12,"group":77,"place":3,"outcome":"trained","reason":"","age":1,"v0":10,"time":4.21,
//    "prompt":"12+34=","answer":"64","response":"64","reward":1,"rewards":{},"length":3,
//    "segments":[{"version":10,"tokens":2,"text":"6"},{"version":11,"tokens":1,"text":"4"}],
//    "tokens":[8,6,1],"logprob":-0.31,"source":""}
//
// step: version that the step of the group produced; of a group that was not trained, the newest
// version at that time. outcome, reason: of the group; of a response that failed by itself,
// `failed` and its reason; its group continues without it. age: age that the bound limits
// (docs/explanation/semantics.md); null: not trained. reward: null if the response was not judged
// or failed. rewards: that of each term by name, before its weight, if the verifier is a sum.
// logprob: mean over the tokens of the response. source: key of task.sources; empty: the run has
// one source.
//
// The number of a group alone decides whether it is kept, so that a resumed run keeps the same
// groups. If a step would have no sample, its group that came closest is kept. A resume removes the
// lines of what it makes void, so that a response has one line. When the file reaches half the
// budget, it is renamed to samples.1.jsonl, which it replaces.
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
  std::uint64_t place = 0;  ///< Index in the group.
  Outcome outcome = Outcome::Trained;
  std::string reason;
  std::optional<std::uint64_t> age;
  std::uint64_t v0 = 0;
  Time time{};
  std::string prompt, answer, response;
  std::optional<double> reward;  ///< None: not judged, or failed.
  std::map<std::string, double> rewards;
  std::uint64_t length = 0;
  std::vector<SampleSegment> segments;
  std::vector<std::int32_t> tokens;
  double logprob = 0;
  std::string source;  ///< Of the problem; empty: the run has one.
};

void describe(auto& v, SampleSegment& s) {
  v.field(1, "version", s.version);
  v.field(2, "tokens", s.tokens);
  v.field(3, "text", s.text);
}
void describe(auto& v, Sample& s) {
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
  v.field(18, "source", s.source);
}

/// An interval on the clock of the run that a resume made void: from the checkpoint to the resume.
struct VoidTime {
  Time after{}, until{};
};

class SamplesFile {
 public:
  /// Continues the existing file. Nothing is written before the first sample.
  SamplesFile(std::filesystem::path run_dir, const SamplesConfig& config)
      : run_dir_(std::move(run_dir)), config_(config) {}

  /// Whether the share alone keeps the responses of this group.
  bool keeps(GroupId group) const;
  /// Call for every finished group, after `metrics` has received the record that finished it.
  /// Errors: Io; those of AppendFile::open().
  Status add(const ReleasedGroup& group, const RunMetrics& metrics);
  /// Removes the lines in these intervals, because their responses are generated again. Errors: Io;
  /// those of open_to_read(). After an error the void lines may still be there.
  Status drop(const std::vector<VoidTime>& times);

 private:
  /// Whether a step would have no sample without this group, and the group is the one to keep.
  bool represents_its_step(const ReleasedGroup& group, const RunMetrics& metrics) const;
  Status append(const std::string& lines);
  Status drop(const std::filesystem::path& path, const std::vector<VoidTime>& times);

  const std::filesystem::path run_dir_;
  const SamplesConfig config_;
  std::optional<AppendFile> file_;
};

/// Visits every line of samples of a run, oldest first, until `visit` returns Stop. Error: the run
/// has no samples.
enum class LineVisit { Continue, Stop };
Status read_sample_lines(const UntrustedFolder& run_dir,
                         const std::function<LineVisit(std::string_view line)>& visit);
/// None: not a sample (for instance a line that is being written).
std::optional<Sample> parse_sample(std::string_view line);

}  // namespace temper::orchestrator
