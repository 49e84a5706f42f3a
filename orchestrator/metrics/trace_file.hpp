// trace.json: the run as a Chrome trace (a JSON array of events; opens in Perfetto, also
// compressed). One track per card (or set of cards with the same actors) with its exclusive states
// and its waits, one per actor with its activities; instant events for steps, publications,
// switches, restarts and checkpoints; counters for the queue and, at each step, reward, staleness
// and tokens per second since the previous one. Written in pieces; a complete JSON document after
// close(). The slices of a card track are contiguous from 0 to the end.
//
// Slices shorter than the resolution (kFinest, or a kSlices-th of the time so far) are merged into
// the previous one, which limits the size of the file. This affects the drawing only; no figure is
// computed from these slices.
#pragma once

#include "core/files.hpp"
#include "core/gzip.hpp"
#include "orchestrator/metrics/run_metrics.hpp"
#include "orchestrator/pipeline/card_kind.hpp"

#include <memory>
#include <variant>

namespace temper::orchestrator {

/// Json writes trace.json, Gzip trace.json.gz.
enum class TraceForm { Json, Gzip };
std::string_view trace_name(TraceForm form);

class TraceFile {
 public:
  static constexpr Duration kFinest = std::chrono::microseconds(20);
  static constexpr std::int64_t kSlices = 20000;

  /// Creates an empty file. Becomes the sink of `timeline`, which must outlive this object.
  /// `kinds`: kinds of cards, if there are several. Errors: see AppendFile::open() and
  /// GzipFile::create().
  static Result<std::unique_ptr<TraceFile>> create(const std::filesystem::path& path,
                                                   TraceForm form,
                                                   Timeline& timeline,
                                                   std::vector<CardKind> kinds = {});
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;
  ~TraceFile() { timeline_.set_sink(nullptr); }

  /// Call for every record, after `metrics` has received it. Error: Io; the events that were not
  /// written are lost.
  Status feed(const Record& record, const RunMetrics& metrics);
  /// Writes what is pending, and the end of the document. Error: Io.
  Status close(const RunMetrics& metrics);
  /// As put_in_place() in core/replace.hpp, errors included. After an error the file is closed.
  Status put_in_place(const std::filesystem::path& from, const std::filesystem::path& to);

 private:
  enum class Process { Run = 1, Cards = 2, Actors = 3 };
  /// A track of the trace, with its last slice, which may still grow.
  struct Track {
    Process process = Process::Run;
    std::uint32_t id = 0;
    Time begin{}, end{};
    actors::CardState state = actors::CardState::Idle;
    std::string on;
    bool open = false;
  };

  using File = std::variant<AppendFile, GzipFile>;

  TraceFile(File file, Timeline& timeline, std::vector<CardKind> kinds);
  void name_tracks(const std::vector<ActorSpec>& actors);
  void draw(Track& track, Time begin, Time end, actors::CardState state, std::string_view on);
  void end_slice(Track& track);
  /// `args`: members of a JSON object, without braces.
  void mark(Process process,
            std::uint32_t id,
            Time at,
            std::string_view name,
            std::string_view args = {});
  void mark_events(const Record& record, const std::vector<ActorSpec>& actors);
  void mark_update(const RunMetrics& metrics, Time now);
  void mark_counters(const Record& record, const RunMetrics& metrics);
  void counter(Time at, std::string_view name, std::string_view values);
  void begin_event();
  Status flush();

  File file_;
  Timeline& timeline_;
  const std::vector<CardKind> kinds_;
  std::string buffer_;
  bool first_ = true;
  std::map<CardId, Track> cards_;
  std::vector<Track> actors_;
  Time next_counter_{};
  std::map<std::string, std::string, std::less<>> counted_;  ///< Last value of each counter.
  std::uint64_t updates_ = 0;
};

}  // namespace temper::orchestrator
