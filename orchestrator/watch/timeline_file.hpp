// timeline/0.jsonl ... 7.jsonl: the activity of every actor, at eight resolutions, so that a page
// shows a run of a minute or a month, whole or one second of it, from a few hundred kilobytes.
//
// A level divides time into buckets of kFinest * kFactor^level; a bucket has the activity that
// filled most of it. A line is a block; an example from level 0:
//
//   {"b":1200,"e":1450,"names":[["decode",""],["wait-data","groups: 77 (v0 3) and others, ..."]],
//    "t":[[0,1200,90,0,160,1],[3,1210,240,0]]}
//
// b, e: first bucket and end of the block. names: states, and reasons of waits; levels from kPlain
// on have only the kind of the reason. t: for each actor its number, the bucket where it begins,
// and then pairs of a length in buckets and an index into names. The blocks of a level are
// contiguous for each actor; an actor whose activity is not known yet is in a later block.
//
// When a file reaches a sixteenth of the budget, it is renamed to 0.old.jsonl, which it replaces:
// of a long run, fine levels show the latest part, and the coarsest level shows all.
#pragma once

#include "core/files.hpp"
#include "orchestrator/metrics/timeline.hpp"

#include <array>
#include <deque>
#include <map>
#include <vector>

namespace temper::orchestrator {

inline constexpr std::string_view kTimelineFolder = "timeline";

class TimelineFile {
 public:
  static constexpr std::size_t kLevels = 8;
  static constexpr std::size_t kPlain = 2;
  static constexpr std::int64_t kFactor = 8;
  static constexpr Duration kFinest = std::chrono::milliseconds(1);

  /// Creates empty files in timeline.partial/: a resumed run feeds its whole log again. Errors: Io;
  /// those of AppendFile::open().
  static Result<TimelineFile> create(const std::filesystem::path& run_dir, Bytes budget);

  /// Replaces the files in timeline/ by them. Errors: see put_folder_in_place().
  Status put_in_place();
  /// Call for every record, in order. Errors: as flush().
  Status feed(const Record& record);
  /// Writes what is known, so that readers see it. Errors: Io; those of AppendFile::open(). The
  /// line that was not written is lost.
  Status flush();
  /// The same, for a run that ended at `end`. Errors: as flush().
  Status close(Time end);

 private:
  struct Name {
    actors::CardState state = actors::CardState::Down;
    WaitCause cause{};
    auto operator<=>(const Name&) const = default;
  };
  struct Run {
    std::int64_t length = 0;
    std::size_t name = 0;
  };
  /// State of an actor on one level.
  struct Track {
    std::int64_t begin = 0;  ///< First bucket of the runs below.
    std::vector<Run> runs;
    std::int64_t bucket = 0;                               ///< The bucket that is being filled.
    std::vector<std::pair<std::size_t, Duration>> shares;  ///< Shares of it, by name.
  };
  struct Level {
    Duration width{};
    std::optional<AppendFile> file;
    std::filesystem::path path;
    std::vector<Track> tracks;
    std::vector<Name> names;  ///< Names of the current block.
    std::map<Name, std::size_t> index;
    std::size_t runs = 0;
  };
  struct Wait {
    Time since{};
    Name name;
  };
  struct Actor {
    Time cursor{};           ///< Activity before it is in the levels.
    std::deque<Wait> waits;  ///< Waits from the cursor on.
  };

  TimelineFile() = default;
  void take_actors(const std::vector<ActorSpec>& actors);
  void set_wait(std::size_t actor, Time now, Name name);
  void add_spans(std::size_t actor, const std::vector<actors::Span>& spans);
  /// Adds the waits of an actor up to `end` to the levels.
  void settle(std::size_t actor, Time end);
  void add(std::size_t actor, Time begin, Time end, const Name& name);
  static void add(Level& level, std::size_t actor, Time begin, Time end, const Name& name);
  static void fill(Track& track, Level& level, std::int64_t buckets, std::size_t name);
  static void finish_bucket(Track& track, Level& level);
  static std::size_t intern(Level& level, const Name& name);
  Status write(Level& level);

  std::filesystem::path folder_;  ///< timeline/
  std::int64_t budget_ = 0;       ///< Of one file, in bytes.
  std::array<Level, kLevels> levels_;
  std::vector<Actor> actors_;
  Duration horizon_{};
  Time next_settle_{};
};

}  // namespace temper::orchestrator
