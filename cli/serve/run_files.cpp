#include "cli/serve/run_files.hpp"

#include "actors/runtime/process.hpp"
#include "core/json.hpp"
#include "core/json_document.hpp"
#include "core/json_read.hpp"
#include "core/unix_time.hpp"
#include "orchestrator/record/outputs.hpp"
#include "orchestrator/watch/timeline_file.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace temper::cli {
namespace {

namespace fs = std::filesystem;
using orchestrator::TimelineFile;

/// Maximum size of an answer's blocks: about what a page draws without a pause.
constexpr std::size_t kMostBytes = std::size_t{3} << 19;
/// A run on another machine counts as lost after this silence.
constexpr double kSilence = 60;

/// The number after `"b":` or `"e":` at the start of a line.
std::int64_t head_number(std::string_view line, std::string_view key) {
  const std::size_t at = line.substr(0, 64).find(key);
  if (at == std::string_view::npos)
    return 0;
  std::int64_t value = 0;
  std::from_chars(line.data() + at + key.size(), line.data() + line.size(), value);
  return value;
}

struct Blocks {
  std::string text;  ///< Blocks joined by commas.
  std::int64_t from = INT64_MAX;
  bool fits = true;
};

/// Adds the blocks of a file's text that overlap the buckets [from, to), up to `most` bytes. Lines
/// that are not JSON are skipped, since one of them would spoil the whole answer.
void add_blocks(const Result<std::string>& text,
                std::int64_t from,
                std::int64_t to,
                std::size_t most,
                Blocks& blocks) {
  if (!text)
    return;
  std::size_t begin = 0;
  for (std::size_t end; (end = text->find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::string_view line = std::string_view(*text).substr(begin, end - begin);
    const std::int64_t first = head_number(line, "\"b\":");
    blocks.from = std::min(blocks.from, first);
    if (first >= to || head_number(line, "\"e\":") <= from || parse_json(line).is_discarded())
      continue;
    blocks.text += blocks.text.empty() ? "" : ",";
    blocks.text += line;
    if (blocks.text.size() > most) {
      blocks.fits = false;
      return;
    }
  }
}

}  // namespace

RunFiles::RunFiles(std::string id, UntrustedFolder folder)
    : id_(std::move(id)), folder_(std::move(folder)), metrics_(folder_) {}

bool is_run(const UntrustedFolder& folder) {
  const auto has = [&](std::string_view name) { return open_to_read(folder, name).has_value(); };
  return has("config.yaml") && (has("events.log") || has(kLiveFile));
}

bool RunFiles::exists() const {
  return is_run(folder_);
}

RunFigures RunFiles::figures() const {
  RunFigures f;
  if (!live_)
    return f;
  const orchestrator::Summary& s = live_->summary;
  f.simulated = s.simulated;
  f.began = live_->began;
  f.steps = s.steps;
  f.steps_wanted = live_->steps;
  f.wall_s = s.wall_s;
  f.reward = s.reward.last;
  f.trained_per_s = s.tokens.trained_per_s;
  f.busy = s.utilization.busy;
  f.cards = s.cards;
  f.alarms = live_->alarms.size();
  return f;
}

bool RunFiles::is_alive() const {
  if (live_->host != actors::host_name())
    return unix_time() - live_->updated < kSilence;
  return ::kill(static_cast<pid_t>(live_->pid), 0) == 0 || errno == EPERM;
}

RunState RunFiles::compute_state() const {
  if (!live_)
    return RunState::Unknown;
  if (!live_->over)
    return is_alive() ? RunState::Running : RunState::Lost;
  const orchestrator::Summary& s = live_->summary;
  return s.ok ? RunState::Finished : s.stopped ? RunState::Stopped : RunState::Failed;
}

void RunFiles::update() {
  metrics_.update();
  // The time alone is not enough: two files written within one kernel tick have the same time.
  struct stat file {};
  const auto opened = open_to_read(folder_, kLiveFile);
  const bool there = opened && ::fstat(opened->get(), &file) == 0;
  const std::array<std::int64_t, 3> now{
      static_cast<std::int64_t>(file.st_ino), file.st_mtim.tv_sec, file.st_mtim.tv_nsec};
  bool news = frame_.empty();
  if (there && read_ != now) {
    if (const auto text = read_file(folder_, kLiveFile)) {
      read_ = now;
      live_ = from_json<Live>(*text);
      news = true;
    }
  }
  const RunState before = state_;
  state_ = compute_state();
  if (!news && before == state_)
    return;
  frame_ = fmt::format(R"({{"id":{},"state":"{}","live":{}}})",
                       to_json(id_),
                       name_of(state_),
                       live_ ? to_json(*live_) : "null");
  news_ = true;
}

std::string RunFiles::timeline(double from, double to) const {
  // Clamps any number, including NaN, to seconds with valid buckets.
  constexpr double kMost = 1e9;
  from = from > 0 ? std::min(from, kMost) : 0;
  to = to > from ? std::min(to, kMost) : from;
  const fs::path folder = orchestrator::kTimelineFolder;
  const auto file = [&](std::size_t level, std::string_view ending) {
    return read_file(folder_, folder / fmt::format("{}{}", level, ending));
  };
  std::string best;
  // From coarse to fine, as long as the answer is small and reaches back far enough.
  double width = seconds(TimelineFile::kFinest);
  std::array<double, TimelineFile::kLevels> widths{};
  for (double& w : widths)
    w = std::exchange(width, width * static_cast<double>(TimelineFile::kFactor));
  for (std::size_t level = TimelineFile::kLevels; level-- > 0;) {
    const double w = widths[level];
    const auto first = static_cast<std::int64_t>(from / w);
    const auto end = static_cast<std::int64_t>(to / w) + 1;
    // Falls back to the coarsest level.
    const std::size_t most = best.empty() ? SIZE_MAX : kMostBytes;
    Blocks blocks;
    add_blocks(file(level, ".old.jsonl"), first, end, most, blocks);
    if (blocks.fits)
      add_blocks(file(level, ".jsonl"), first, end, most, blocks);
    if (!best.empty() && (!blocks.fits || blocks.from > first))
      break;
    if (!blocks.text.empty())
      best = fmt::format(R"({{"level":{},"width_s":{},"blocks":[{}]}})", level, w, blocks.text);
    if (!best.empty() && w <= (to - from) / 4000)
      break;  // finer than a screen can show
  }
  return best.empty() ? R"({"level":0,"width_s":0.001,"blocks":[]})" : best;
}

std::vector<UntrustedFolder> find_runs(const std::vector<fs::path>& folders) {
  std::vector<UntrustedFolder> runs;
  for (const fs::path& given : folders) {
    fs::path folder = fs::absolute(given).lexically_normal();
    if (!folder.has_filename())  // "runs/": the name is the last part
      folder = folder.parent_path();
    if (is_run(folder)) {
      runs.emplace_back(folder);
      continue;
    }
    std::error_code error;
    std::vector<fs::path> names;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
      if (is_run({folder, it->path().filename()}))
        names.push_back(it->path().filename());
    }
    std::ranges::sort(names);
    for (fs::path& name : names)
      runs.emplace_back(folder, std::move(name));
  }
  return runs;
}

}  // namespace temper::cli
