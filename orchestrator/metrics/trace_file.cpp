#include "orchestrator/metrics/trace_file.hpp"

#include "core/json.hpp"
#include "core/replace.hpp"
#include "orchestrator/metrics/metric_table.hpp"
#include "orchestrator/metrics/metrics_file.hpp"
#include "orchestrator/record/sentences.hpp"
#include "orchestrator/scheduler/state/config.hpp"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace temper::orchestrator {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 18;

/// Microseconds with three decimals, hence exact.
std::string micros(Duration d) {
  const std::int64_t ns = std::max<std::int64_t>(0, d.count());
  return fmt::format(FMT_COMPILE("{}.{:03}"), ns / 1000, ns % 1000);
}

/// "card 3", "cards 0-31", "16 cards from 3".
std::string name_of_cards(const std::vector<CardId>& cards) {
  const std::uint32_t first = cards.front().value(), last = cards.back().value();
  if (cards.size() == 1)
    return fmt::format("card {}", first);
  return last - first + 1 == cards.size() ? fmt::format("cards {}-{}", first, last)
                                          : fmt::format("{} cards from {}", cards.size(), first);
}

/// ": rollout-0, trainer".
std::string actors_on(const std::vector<ActorSpec>& actors, CardId card) {
  std::string out;
  for (const ActorSpec& actor : actors) {
    if (std::find(actor.cards.begin(), actor.cards.end(), card) != actor.cards.end())
      out += (out.empty() ? ": " : ", ") + actor.name;
  }
  return out;
}

std::string json_string(std::string_view text) {
  return to_json(std::string(text));
}

}  // namespace

std::string_view trace_name(TraceForm form) {
  return form == TraceForm::Gzip ? "trace.json.gz" : "trace.json";
}

TraceFile::TraceFile(File file, Timeline& timeline, std::vector<CardKind> kinds)
    : file_(std::move(file)), timeline_(timeline), kinds_(std::move(kinds)), buffer_("[\n") {
  timeline_.set_sink([this](CardId card, const CardSlice& slice) {
    const bool busy = is_busy(slice.state);
    draw(cards_[card],
         slice.begin,
         slice.end,
         slice.state,
         busy ? std::string() : sentence(timeline_.reason(slice.reason).cause));
  });
}

Result<std::unique_ptr<TraceFile>> TraceFile::create(const std::filesystem::path& path,
                                                     TraceForm form,
                                                     Timeline& timeline,
                                                     std::vector<CardKind> kinds) {
  if (form == TraceForm::Gzip) {
    TEMPER_TRY(GzipFile file, GzipFile::create(path));
    return std::unique_ptr<TraceFile>(
        new TraceFile(File(std::move(file)), timeline, std::move(kinds)));
  }
  TEMPER_TRY(AppendFile file, AppendFile::open(path, 0));
  return std::unique_ptr<TraceFile>(
      new TraceFile(File(std::move(file)), timeline, std::move(kinds)));
}

Status TraceFile::feed(const Record& record, const RunMetrics& metrics) {
  if (const auto* actors = actors_in(record.event))
    name_tracks(*actors);
  if (const auto* activity = std::get_if<event::Activity>(&record.event)) {
    if (activity->actor.value() < actors_.size()) {
      for (const actors::Span& s : activity->spans)
        draw(actors_[activity->actor.value()], s.begin, s.end, s.state, {});
    }
    return buffer_.size() >= kPiece ? flush() : Status{};
  }
  mark_events(record, metrics.config().actors);
  mark_counters(record, metrics);
  return buffer_.size() >= kPiece ? flush() : Status{};
}

Status TraceFile::close(const RunMetrics& metrics) {
  timeline_.finish(metrics.wall());
  for (auto& [id, track] : cards_)
    end_slice(track);
  for (Track& track : actors_)
    end_slice(track);
  buffer_ += "\n]\n";
  TEMPER_TRY_STATUS(flush());
  auto* compressed = std::get_if<GzipFile>(&file_);
  return compressed != nullptr ? compressed->close() : Status{};
}

Status TraceFile::put_in_place(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (auto* compressed = std::get_if<GzipFile>(&file_))
    return compressed->put_in_place(from, to);
  TEMPER_TRY(file_, temper::put_in_place(std::get<AppendFile>(std::move(file_)), from, to));
  return {};
}

Status TraceFile::flush() {
  const std::string piece = std::move(buffer_);
  buffer_.clear();
  return std::visit([&](auto& file) { return file.append(piece); }, file_);
}

void TraceFile::begin_event() {
  if (!first_)
    buffer_ += ",\n";
  first_ = false;
}

/// Names the tracks of actors that are added later.
void TraceFile::name_tracks(const std::vector<ActorSpec>& actors) {
  const auto name =
      [this](std::string_view what, Process process, std::uint32_t id, std::string_view text) {
        begin_event();
        fmt::format_to(std::back_inserter(buffer_),
                       R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"name":{}}}}})",
                       what,
                       static_cast<int>(process),
                       id,
                       json_string(text));
      };
  if (actors_.empty()) {
    name("process_name", Process::Run, 0, "run");
    name("process_name", Process::Cards, 0, "cards");
    name("process_name", Process::Actors, 0, "actors");
    name("thread_name", Process::Run, 0, "events");
  }
  for (const std::vector<CardId>& line : timeline_.lines()) {
    const CardId card = line.front();
    if (cards_.contains(card))
      continue;
    cards_[card].process = Process::Cards;
    cards_[card].id = card.value();
    name("thread_name",
         Process::Cards,
         card.value(),
         name_of_cards(line) + kind_text(kinds_, card) + actors_on(actors, card));
  }
  for (const ActorSpec& actor : std::span(actors).subspan(actors_.size())) {
    Track track;
    track.process = Process::Actors;
    track.id = static_cast<std::uint32_t>(actors_.size());
    name("thread_name", Process::Actors, track.id, actor.name);
    actors_.push_back(std::move(track));
  }
}

void TraceFile::draw(
    Track& track, Time begin, Time end, actors::CardState state, std::string_view on) {
  if (end <= begin)
    return;
  const Duration resolution = std::max(kFinest, end.time_since_epoch() / kSlices);
  const bool same = track.open && track.state == state && track.on == on;
  const bool near = track.open && begin - track.end < resolution;
  if (near && (same || end - begin < resolution)) {
    track.end = std::max(track.end, end);
    return;
  }
  end_slice(track);
  track.begin = track.open && near ? track.end : begin;
  track.end = end;
  track.state = state;
  track.on = on;
  track.open = true;
}

void TraceFile::end_slice(Track& track) {
  if (!track.open)
    return;
  begin_event();
  fmt::format_to(std::back_inserter(buffer_),
                 FMT_COMPILE(R"({{"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},"name":"{}")"),
                 static_cast<int>(track.process),
                 track.id,
                 micros(track.begin.time_since_epoch()),
                 micros(track.end - track.begin),
                 name_of(track.state));
  if (!track.on.empty())
    fmt::format_to(std::back_inserter(buffer_), R"(,"args":{{"on":{}}})", json_string(track.on));
  buffer_ += '}';
}

void TraceFile::mark(
    Process process, std::uint32_t id, Time at, std::string_view name, std::string_view args) {
  begin_event();
  fmt::format_to(std::back_inserter(buffer_),
                 R"({{"ph":"i","s":"{}","pid":{},"tid":{},"ts":{},"name":{})",
                 process == Process::Run ? 'p' : 't',
                 static_cast<int>(process),
                 id,
                 micros(at.time_since_epoch()),
                 json_string(name));
  if (!args.empty())
    fmt::format_to(std::back_inserter(buffer_), R"(,"args":{{{}}})", args);
  buffer_ += '}';
}

void TraceFile::mark_events(const Record& record, const std::vector<ActorSpec>& actors) {
  const Time now = record.time;
  const auto text = [&](const auto& reason) { return sentence(reason, actors); };
  if (const auto* committed = std::get_if<event::WeightsCommitted>(&record.event)) {
    mark(Process::Actors,
         committed->actor.value(),
         now,
         committed->error.empty() ? "weights" : "weights refused: " + committed->error,
         fmt::format(R"("version":{})", committed->version));
  } else if (const auto* switched = std::get_if<event::Switched>(&record.event)) {
    mark(Process::Actors,
         switched->actor.value(),
         now,
         fmt::format("{}{}",
                     name_of(switched->action),
                     switched->error.empty() ? "" : " refused: " + switched->error));
  } else if (const auto* clock = std::get_if<event::ClockRead>(&record.event)) {
    mark(Process::Actors,
         clock->actor.value(),
         now,
         fmt::format("its clock was {:.3f} ms ahead (+/- {:.3f} ms); corrected",
                     1e3 * seconds(clock->ahead),
                     1e3 * seconds(clock->error)));
  } else if (const auto* attached = std::get_if<event::WorkerAttached>(&record.event)) {
    mark(Process::Actors,
         attached->actor.value(),
         now,
         fmt::format("process {} on {} attached", attached->pid, attached->host));
  } else if (const auto* saved = std::get_if<event::CheckpointSaved>(&record.event)) {
    mark(Process::Run, 0, now, "checkpoint", fmt::format(R"("version":{})", saved->version));
  } else if (std::holds_alternative<event::Resumed>(record.event)) {
    mark(Process::Run, 0, now, "resumed");
  } else if (std::holds_alternative<event::Scaled>(record.event)) {
    mark(Process::Run, 0, now, "scaled");
  } else if (std::holds_alternative<event::StopRequested>(record.event)) {
    mark(Process::Run, 0, now, "stop requested");
  }
  for (const Command& command : record.commands) {
    if (const auto* launch = std::get_if<command::Launch>(&command)) {
      if (launch->reason)
        mark(Process::Actors, launch->actor.value(), now, "restart: " + text(launch->reason));
    } else if (const auto* discard = std::get_if<command::Discard>(&command)) {
      mark(Process::Actors, discard->actor.value(), now, "restart: " + text(discard->reason));
    } else if (const auto* retire = std::get_if<command::Retire>(&command)) {
      mark(Process::Actors, retire->actor.value(), now, sentence(WaitCause{WaitKind::Removed}));
    } else if (const auto* rollback = std::get_if<command::Rollback>(&command)) {
      mark(Process::Run, 0, now, "rollback: " + text(rollback->reason));
    } else if (const auto* finish = std::get_if<command::Finish>(&command)) {
      mark(Process::Run,
           0,
           now,
           finish->ok ? "finished" : "ended: " + end_of(*finish, actors).reason);
    }
  }
}

void TraceFile::mark_update(const RunMetrics& metrics, Time now) {
  const Update& update = metrics.updates().back();
  mark(Process::Run,
       0,
       now,
       "update",
       fmt::format(R"("version":{},"reward":{},"tokens":{},"age_mean":{},"age_max":{})",
                   update.version,
                   to_json(update.metrics.reward_mean),
                   update.metrics.tokens.count(),
                   to_json(update.staleness_mean),
                   update.staleness_max));
  const MetricsLine line = line_of(update, metrics);
  for (const Metric& metric : metric_table()) {
    if (metric.place.group.empty())
      continue;
    if (const auto value = metric.of_line(line))
      counter(now, metric.name, fmt::format(R"("value":{})", to_json(*value)));
  }
}

void TraceFile::mark_counters(const Record& record, const RunMetrics& metrics) {
  const Time now = record.time;
  const std::uint64_t updates = metrics.history().count();
  if (updates > updates_)
    mark_update(metrics, now);
  updates_ = updates;
  if (now < next_counter_)
    return;
  next_counter_ =
      now + std::max<Duration>(std::chrono::milliseconds(20), now.time_since_epoch() / kSlices);
  const QueueDepth q = metrics.queue();
  counter(now,
          "groups",
          fmt::format(R"("generating":{},"scoring":{},"ready":{},"training":{})",
                      q.generating,
                      q.scoring,
                      q.ready,
                      q.training));
  if (const std::int64_t slots = metrics.slots().slots(); slots > 0)
    counter(now, "slots", fmt::format(R"("held":{},"of":{})", metrics.slots().load(), slots));
}

/// Writes the counter only if it has changed; a viewer holds the last value.
void TraceFile::counter(Time at, std::string_view name, std::string_view values) {
  std::string& before = counted_[std::string(name)];
  if (before == values)
    return;
  before = values;
  begin_event();
  fmt::format_to(std::back_inserter(buffer_),
                 FMT_COMPILE(R"({{"ph":"C","pid":1,"tid":0,"ts":{},"name":"{}","args":{{{}}}}})"),
                 micros(at.time_since_epoch()),
                 name,
                 values);
}

}  // namespace temper::orchestrator
