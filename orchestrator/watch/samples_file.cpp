#include "orchestrator/watch/samples_file.hpp"

#include "core/hash.hpp"
#include "core/json.hpp"
#include "core/json_read.hpp"
#include "core/replace.hpp"
#include "orchestrator/pipeline/load.hpp"
#include "orchestrator/record/sentences.hpp"
#include "orchestrator/scheduler/state/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;

/// Fills in what all responses of the group share.
Sample sample_of(const ReleasedGroup& group, const RunMetrics& metrics) {
  Sample s;
  s.group = group.release.group.value();
  s.outcome = group.release.outcome;
  s.reason = sentence(group.release.reason, metrics.config().actors);
  s.prompt = group.payload.prompt;
  s.answer = group.payload.answer;
  s.source = group.payload.source;
  s.time = metrics.wall();
  if (!metrics.updates().empty())
    s.step = metrics.updates().back().version.value();
  if (s.outcome != Outcome::Trained || metrics.updates().empty())
    return s;
  for (const TrainedBatch::Group& trained : metrics.last_batch().groups) {
    if (trained.group == group.release.group) {
      s.v0 = trained.dispatched.value();
      s.age = metrics.last_batch().step.value() - trained.age_from.value();
    }
  }
  return s;
}

/// The text of a segment is what it adds to the text before it. Decoded alone, it would lose a
/// space at its start if the tokenizer is of the SentencePiece kind. A segment that begins inside a
/// character is decoded alone.
void add_segments(Sample& s,
                  const std::vector<actors::Segment>& segments,
                  const actors::Tokenizer& tokenizer) {
  const auto decoded = [&](std::size_t begin, std::size_t end) {
    return tokenizer.decode({s.tokens.begin() + static_cast<std::ptrdiff_t>(begin),
                             s.tokens.begin() + static_cast<std::ptrdiff_t>(end)});
  };
  std::size_t begin = 0;
  std::string before;
  for (const actors::Segment& segment : segments) {
    const std::size_t end =
        std::min(s.tokens.size(), begin + static_cast<std::size_t>(segment.tokens.count()));
    std::string text = decoded(0, end);
    const bool continues = text.starts_with(before);
    s.segments.push_back({segment.version,
                          segment.tokens.count(),
                          continues ? text.substr(before.size()) : decoded(begin, end)});
    before = std::move(text);
    begin = end;
  }
}

/// `s` has what all responses of the group share.
Sample sample_of(Sample s, const ResponsePayload& p, const actors::Tokenizer& tokenizer) {
  if (!p.failure.empty()) {
    s.outcome = Outcome::Failed;
    s.reason = p.failure;
    s.age.reset();
  }
  s.tokens.assign(p.tokens.begin(), p.tokens.end());
  s.length = s.tokens.size();
  s.response = tokenizer.decode(s.tokens);
  if (p.failure.empty()) {
    s.reward = p.reward;
    s.rewards = p.terms;
  }
  add_segments(s, p.segments, tokenizer);
  if (!p.segments.empty() && s.outcome != Outcome::Trained)
    s.v0 = p.segments.front().version.value();
  s.logprob = p.logprobs.empty() ? 0
                                 : std::accumulate(p.logprobs.begin(), p.logprobs.end(), 0.0) /
                                       static_cast<double>(p.logprobs.size());
  return s;
}

/// 20 bits that depend only on the number of the group; groups with low values are kept first.
std::uint64_t drawn_for(GroupId group) {
  const std::uint64_t id = group.value();
  return hash64(std::as_bytes(std::span(&id, 1))) >> 44;
}

}  // namespace

bool SamplesFile::keeps(GroupId group) const {
  constexpr double kOne = 1 << 20;
  return static_cast<double>(drawn_for(group)) < config_.share * kOne;
}

bool SamplesFile::represents_its_step(const ReleasedGroup& group, const RunMetrics& metrics) const {
  if (config_.share == 0 || group.release.outcome != Outcome::Trained)
    return false;
  const std::uint64_t drawn = drawn_for(group.release.group);
  return std::ranges::none_of(metrics.last_batch().groups, [&](const TrainedBatch::Group& other) {
    return drawn_for(other.group) < drawn;
  });
}

Status SamplesFile::add(const ReleasedGroup& group, const RunMetrics& metrics) {
  if (!keeps(group.release.group) && !represents_its_step(group, metrics))
    return {};
  Sample s = sample_of(group, metrics);
  std::string lines;
  for (s.place = 0; s.place < group.payload.responses.size(); ++s.place) {
    const ResponsePayload& p = group.payload.responses[s.place];
    if (p.tokens.empty() && p.segments.empty() && p.failure.empty())
      continue;  // Never generated.
    lines += to_json(sample_of(s, p, group.tokenizer)) + "\n";
  }
  return lines.empty() ? Status() : append(lines);
}

Status SamplesFile::append(const std::string& lines) {
  const fs::path path = run_dir_ / kSamplesFile;
  if (!file_) {
    TEMPER_TRY(file_, AppendFile::open(path));
  }
  const std::int64_t half = config_.budget.count() / 2;
  if (file_->size() > 0 && file_->size() + std::ssize(lines) > half) {
    std::error_code error;
    fs::rename(path, run_dir_ / kOlderSamplesFile, error);
    if (error)
      return Error{ErrorCode::Io,
                   fmt::format("cannot move {}: {}", path.string(), error.message())};
    TEMPER_TRY(file_, AppendFile::open(path));
  }
  return file_->append(lines);
}

namespace {

/// False: the visitor stopped.
Result<bool> read_lines(FileReader file, const std::function<LineVisit(std::string_view)>& visit) {
  constexpr std::size_t kPiece = std::size_t{1} << 18;
  constexpr std::size_t kLongestLine = std::size_t{256} << 20;
  std::string text;
  for (bool more = true; more;) {
    TEMPER_TRY(const std::size_t got, file.read(text, kPiece));
    more = got > 0;
    std::size_t begin = 0;
    for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
      const std::string_view line = std::string_view(text).substr(begin, end - begin);
      if (visit(line) == LineVisit::Stop)
        return false;
    }
    text.erase(0, begin);
    if (text.size() > kLongestLine)
      return corrupt(fmt::format("a line is longer than {} bytes", kLongestLine));
  }
  return true;
}

}  // namespace

Status SamplesFile::drop(const fs::path& path, const std::vector<VoidTime>& times) {
  std::error_code ignored;
  if (!fs::exists(path, ignored))
    return {};
  const fs::path partial = path.string() + ".partial";
  TEMPER_TRY(AppendFile kept, AppendFile::open(partial, 0));
  Status status;
  bool all = true;
  TEMPER_TRY(FileReader lines, FileReader::open(path));
  const auto keep_valid = [&](std::string_view line) {
    const auto sample = parse_sample(line);
    const bool is_void = sample && std::ranges::any_of(times, [&](const VoidTime& t) {
                           return sample->time > t.after && sample->time <= t.until;
                         });
    all = all && !is_void;
    if (!is_void)
      status = kept.append(std::string(line) + "\n");
    return status ? LineVisit::Continue : LineVisit::Stop;
  };
  TEMPER_TRY(std::ignore, read_lines(std::move(lines), keep_valid));
  TEMPER_TRY_STATUS(std::move(status));
  if (!all) {
    TEMPER_TRY(std::ignore, put_in_place(std::move(kept), partial, path));
    return {};
  }
  fs::remove(partial, ignored);
  return {};
}

Status SamplesFile::drop(const std::vector<VoidTime>& times) {
  file_.reset();
  TEMPER_TRY_STATUS(drop(run_dir_ / kOlderSamplesFile, times));
  return drop(run_dir_ / kSamplesFile, times);
}

std::optional<Sample> parse_sample(std::string_view line) {
  return from_json<Sample>(line);
}

namespace {

/// Why a folder has no samples.
std::string why_none(const fs::path& run_dir) {
  if (!open_to_read(UntrustedFolder(run_dir), "events.log"))
    return "it is not a run folder";
  if (!read_file(UntrustedFolder(run_dir), "config.yaml"))
    return "its config.yaml cannot be read";
  const auto config = load_config(run_dir / "config.yaml");
  if (!config)
    return "its config.yaml cannot be read";
  if (config->hardware == HardwareKind::Simulated || config->policy != actors::PolicyKind::Torch)
    return "the run has no text, because its policy is synthetic";
  if (config->samples.share == 0)
    return "`samples.share` is 0; change it when you resume the run: --set samples.share=0.05";
  return fmt::format("none of the {:g} % of groups that are saved (samples.share) is finished yet",
                     config->samples.share * 100);
}

}  // namespace

Status read_sample_lines(const UntrustedFolder& run_dir,
                         const std::function<LineVisit(std::string_view line)>& visit) {
  bool any = false;
  for (const std::string_view name : {kOlderSamplesFile, kSamplesFile}) {
    auto file = FileReader::open(run_dir, name);
    if (!file && file.error().code == ErrorCode::NotFound)
      continue;
    if (!file)
      return file.error();
    any = true;
    TEMPER_TRY(const bool on, read_lines(*std::move(file), visit));
    if (!on)
      return {};
  }
  if (any)
    return {};
  return Error{
      ErrorCode::NotFound,
      fmt::format(
          "{} has no {}: {}", run_dir.path().string(), kSamplesFile, why_none(run_dir.path()))};
}

}  // namespace temper::orchestrator
