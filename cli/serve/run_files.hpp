// What is served of one run, read from its folder alone: a run that goes on, one that ended and one
// whose process is gone look alike. Cheap to ask again: a file is read when it has changed.
#pragma once

#include "cli/serve/series.hpp"
#include "cli/watch/live.hpp"

#include <array>
#include <optional>

namespace temper::cli {

/// How a run is or how it ended. Lost: its process is gone without a word (killed, or on another
/// machine and silent). Unknown: it has no live.json yet.
enum class RunState { Running, Finished, Stopped, Failed, Lost, Unknown };

/// How far a run is and how well it does, for lists of runs.
struct RunFigures {
  bool simulated = false;
  double began = 0;  ///< Seconds since 1970; 0: not known.
  std::uint64_t steps = 0, steps_wanted = 0;
  double wall_s = 0;
  std::optional<double> reward;
  double trained_per_s = 0, busy = 0;
  std::uint64_t cards = 0, alarms = 0;
};
template <class V>
void describe(V& v, RunFigures& f) {
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

  /// Reads what has changed. True: a client should be told.
  bool update();
  RunState state() const { return state_; }
  /// {"id","state","live":{...}}; `live` is null before the run has written any.
  const std::string& frame() const { return frame_; }
  const std::optional<Live>& live() const { return live_; }
  /// All 0 before the run has written any.
  RunFigures figures() const;
  const Series& series() const { return metrics_.series(); }

  /// The time line of [from, to) seconds at the finest level whose answer is small:
  /// {"width_s","level","blocks":[...]} with blocks as they are in the files.
  std::string timeline(double from, double to) const;
  /// Also of a run that ended before there was a live.json.
  bool exists() const;

 private:
  bool is_alive() const;
  RunState compute_state() const;

  const std::string id_;
  const UntrustedFolder folder_;
  MetricsFollower metrics_;
  std::optional<std::array<std::int64_t, 3>> read_;  ///< Which live.json: its file, and its time.
  RunState state_ = RunState::Unknown;
  std::string frame_;
  std::optional<Live> live_;
};

/// The folders that hold runs: each given one that is a run, and runs directly below the others. A
/// symbolic link below a given folder is no run, since anyone who may write there could point it
/// anywhere.
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
