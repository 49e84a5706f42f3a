// The data that the server shows of one run, read only from its folder, so that running, finished
// and lost runs use the same code. Files are read again only if they have changed.
#pragma once

#include "cli/serve/series.hpp"
#include "cli/watch/live.hpp"

#include <array>
#include <optional>
#include <utility>

namespace temper::cli {

/// The state of a run. Lost: the process ended without a final record (killed, or silent on another
/// machine). Unknown: there is no live.json yet.
enum class RunState { Running, Finished, Stopped, Failed, Lost, Unknown };

/// Progress and key figures of a run, for lists of runs.
struct RunFigures {
  bool simulated = false;
  double began = 0;  ///< Seconds since 1970; 0: unknown.
  std::uint64_t steps = 0, steps_wanted = 0;
  double wall_s = 0;
  std::optional<double> reward;
  double trained_per_s = 0, busy = 0;
  std::uint64_t cards = 0, alarms = 0;
};
void describe(auto& v, RunFigures& f) {
  v.field(4, "simulated", f.simulated);
  v.field(5, "began", f.began);
  v.field(6, "steps", f.steps);
  v.field(7, "steps_wanted", f.steps_wanted);
  v.field(8, "wall_s", f.wall_s);
  v.field(9, "reward", f.reward);
  v.field(10, "trained_per_s", f.trained_per_s);
  v.field(11, "busy", f.busy);
  v.field(12, "cards", f.cards);
  v.field(13, "alarms", f.alarms);
}

class RunFiles {
 public:
  RunFiles(std::string id, UntrustedFolder folder);

  const std::string& id() const { return id_; }
  const UntrustedFolder& folder() const { return folder_; }

  /// Reads changed files.
  void update();
  /// Whether the frame has changed since the last call, by any update().
  bool take_news() { return std::exchange(news_, false); }
  RunState state() const { return state_; }
  /// {"id","state","live":{...}}; `live` is null before the first live.json.
  const std::string& frame() const { return frame_; }
  const std::optional<Live>& live() const { return live_; }
  /// All 0 before the first live.json.
  RunFigures figures() const;
  const Series& series() const { return metrics_.series(); }

  /// The timeline of [from, to) seconds at the finest level with a small answer:
  /// {"width_s","level","blocks":[...]} with blocks as in the files.
  std::string timeline(double from, double to) const;
  /// Works also for a run without live.json.
  bool exists() const;

 private:
  bool is_alive() const;
  RunState compute_state() const;

  const std::string id_;
  const UntrustedFolder folder_;
  MetricsFollower metrics_;
  std::optional<std::array<std::int64_t, 3>>
      read_;  ///< Identity of the last read live.json: inode and time.
  RunState state_ = RunState::Unknown;
  std::string frame_;
  bool news_ = false;
  std::optional<Live> live_;
};

/// Finds run folders: each given folder that is a run, and the runs directly below the others. A
/// symbolic link below a given folder is skipped, since it could point anywhere.
std::vector<UntrustedFolder> find_runs(const std::vector<std::filesystem::path>& folders);
bool is_run(const UntrustedFolder& folder);

}  // namespace temper::cli
namespace temper {
template <>
struct EnumNames<cli::RunState> {
  using R = cli::RunState;
  static constexpr std::array<std::pair<R, std::string_view>, 6> value{{{R::Running, "running"},
                                                                        {R::Finished, "finished"},
                                                                        {R::Stopped, "stopped"},
                                                                        {R::Failed, "failed"},
                                                                        {R::Lost, "lost"},
                                                                        {R::Unknown, "unknown"}}};
};
}  // namespace temper
