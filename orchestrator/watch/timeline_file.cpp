#include "orchestrator/watch/timeline_file.hpp"

#include "core/json.hpp"
#include "core/replace.hpp"
#include "orchestrator/record/sentences.hpp"
#include "orchestrator/scheduler/state/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;
using actors::CardState;

/// Approximate limit of runs per block.
constexpr std::size_t kBlock = 4096;

}  // namespace

Result<TimelineFile> TimelineFile::create(const fs::path& run_dir, Bytes budget) {
  TimelineFile file;
  file.folder_ = run_dir / kTimelineFolder;
  const fs::path folder = file.folder_.string() + ".partial";
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  TEMPER_TRY_STATUS(make_folder(folder));
  file.budget_ = budget.count() / static_cast<std::int64_t>(2 * kLevels);
  Duration width = kFinest;
  for (std::size_t i = 0; i < kLevels; ++i, width *= kFactor) {
    Level& level = file.levels_[i];
    level.width = width;
    level.path = folder / fmt::format("{}.jsonl", i);
    TEMPER_TRY(level.file, AppendFile::open(level.path, 0));
  }
  return file;
}

Status TimelineFile::put_in_place() {
  const fs::path partial = folder_.string() + ".partial";
  TEMPER_TRY_STATUS(put_folder_in_place(partial, folder_));
  for (Level& level : levels_)
    level.path = folder_ / level.path.filename();
  return {};
}

/// Actors that are added later were down before.
void TimelineFile::take_actors(const std::vector<ActorSpec>& actors) {
  for (std::size_t a = actors_.size(); a < actors.size(); ++a) {
    actors_.emplace_back();
    actors_.back().waits.push_back({Time{}, {CardState::Down, {WaitKind::Start}}});
  }
  for (Level& level : levels_)
    level.tracks.resize(actors_.size());
}

Status TimelineFile::feed(const Record& record) {
  const Time now = record.time;
  if (const SchedulerConfig* config = config_in(record.event))
    horizon_ = Timeline::horizon_of(*config);
  if (const auto* actors = actors_in(record.event))
    take_actors(*actors);
  if (const auto* did = std::get_if<event::Activity>(&record.event)) {
    if (did->actor.value() < actors_.size())
      add_spans(did->actor.value(), did->spans);
  } else if (const auto* down = std::get_if<event::ActorDown>(&record.event)) {
    set_wait(down->actor.value(), now, {CardState::Down, {WaitKind::Restart}});
  } else if (std::holds_alternative<event::Resumed>(record.event)) {
    for (std::size_t a = 0; a < actors_.size(); ++a)
      set_wait(a, now, {CardState::Down, {WaitKind::Restart}});
  }
  for (const Command& command : record.commands) {
    if (const auto* wait = std::get_if<command::Waiting>(&command)) {
      set_wait(wait->actor.value(), now, {wait->state, wait->cause});
    } else if (const auto* launch = std::get_if<command::Launch>(&command)) {
      set_wait(launch->actor.value(), now, {CardState::Down, {WaitKind::Start}});
    } else if (const auto* discard = std::get_if<command::Discard>(&command)) {
      set_wait(discard->actor.value(), now, {CardState::Down, {WaitKind::Restart}});
    }
  }
  if (now >= next_settle_) {
    for (std::size_t a = 0; a < actors_.size(); ++a)
      settle(a, now - horizon_);
    next_settle_ = now + horizon_ / 16;
  }
  for (Level& level : levels_) {
    if (level.runs >= kBlock)
      TEMPER_TRY_STATUS(write(level));
  }
  return {};
}

void TimelineFile::set_wait(std::size_t actor, Time now, Name name) {
  if (actor >= actors_.size())
    return;
  std::deque<Wait>& waits = actors_[actor].waits;
  if (waits.back().name == name)
    return;
  if (waits.back().since == now && waits.size() > 1)
    waits.back().name = name;
  else
    waits.push_back({now, name});
}

/// Spans come in order; the part before the cursor was recorded already.
void TimelineFile::add_spans(std::size_t actor, const std::vector<actors::Span>& spans) {
  Actor& a = actors_[actor];
  for (const actors::Span& span : spans) {
    settle(actor, span.begin);
    const Time begin = std::max(span.begin, a.cursor);
    if (span.end <= begin)
      continue;
    add(actor, begin, span.end, {span.state, {}});
    a.cursor = span.end;
    while (a.waits.size() > 1 && a.waits[1].since <= a.cursor)
      a.waits.pop_front();
  }
}

void TimelineFile::settle(std::size_t actor, Time end) {
  Actor& a = actors_[actor];
  while (a.cursor < end) {
    const Time until = a.waits.size() > 1 ? std::min(end, a.waits[1].since) : end;
    if (until > a.cursor)
      add(actor, a.cursor, until, a.waits.front().name);
    a.cursor = std::max(a.cursor, until);
    if (a.waits.size() > 1 && a.waits[1].since <= a.cursor)
      a.waits.pop_front();
  }
}

void TimelineFile::add(std::size_t actor, Time begin, Time end, const Name& name) {
  const Name plain{name.state, name.cause.without_instance()};
  for (std::size_t i = 0; i < kLevels; ++i)
    add(levels_[i], actor, begin, end, i < kPlain ? name : plain);
}

std::size_t TimelineFile::intern(Level& level, const Name& name) {
  const auto [it, fresh] = level.index.try_emplace(name, level.names.size());
  if (fresh)
    level.names.push_back(name);
  return it->second;
}

void TimelineFile::add(Level& level, std::size_t actor, Time begin, Time end, const Name& name) {
  Track& track = level.tracks[actor];
  const std::size_t id = intern(level, name);
  const auto share = [&](Duration d) {
    for (auto& [known, sum] : track.shares) {
      if (known == id) {
        sum += d;
        return;
      }
    }
    track.shares.emplace_back(id, d);
  };
  const auto bucket_of = [&](Time t) { return t.time_since_epoch() / level.width; };
  const std::int64_t last = bucket_of(end);
  if (last == track.bucket)
    return share(end - begin);
  share(Time(level.width * (track.bucket + 1)) - begin);
  finish_bucket(track, level);
  fill(track, level, last - track.bucket, id);
  if (const Duration rest = end - Time(level.width * last); rest > Duration(0))
    share(rest);
}

void TimelineFile::finish_bucket(Track& track, Level& level) {
  const auto most =
      std::ranges::max_element(track.shares, {}, [](const auto& s) { return s.second; });
  const std::size_t name = most->first;
  track.shares.clear();
  fill(track, level, 1, name);
}

void TimelineFile::fill(Track& track, Level& level, std::int64_t buckets, std::size_t name) {
  if (buckets == 0)
    return;
  track.bucket += buckets;
  if (!track.runs.empty() && track.runs.back().name == name) {
    track.runs.back().length += buckets;
    return;
  }
  track.runs.push_back({buckets, name});
  ++level.runs;
}

Status TimelineFile::flush() {
  for (Level& level : levels_)
    TEMPER_TRY_STATUS(write(level));
  return {};
}

Status TimelineFile::close(Time end) {
  for (std::size_t a = 0; a < actors_.size(); ++a) {
    settle(a, end);
    for (Level& level : levels_) {
      if (!level.tracks[a].shares.empty())
        finish_bucket(level.tracks[a], level);
    }
  }
  return flush();
}

Status TimelineFile::write(Level& level) {
  if (level.runs == 0)
    return {};
  std::int64_t begin = INT64_MAX, end = 0;
  std::string tracks;
  for (std::size_t a = 0; a < level.tracks.size(); ++a) {
    Track& track = level.tracks[a];
    if (track.runs.empty())
      continue;
    begin = std::min(begin, track.begin);
    end = std::max(end, track.bucket);
    tracks += fmt::format("{}[{},{}", tracks.empty() ? "" : ",", a, track.begin);
    for (const Run& run : track.runs)
      fmt::format_to(std::back_inserter(tracks), ",{},{}", run.length, run.name);
    tracks += ']';
    track.runs.clear();
    track.begin = track.bucket;
  }
  std::string names;
  for (const Name& name : level.names) {
    names += fmt::format("{}[\"{}\",{}]",
                         names.empty() ? "" : ",",
                         name_of(name.state),
                         to_json(sentence(name.cause)));
  }
  const std::string line =
      fmt::format("{{\"b\":{},\"e\":{},\"names\":[{}],\"t\":[{}]}}\n", begin, end, names, tracks);
  // Names of buckets that are still being filled carry over.
  const std::vector<Name> old = std::exchange(level.names, {});
  level.index.clear();
  level.runs = 0;
  for (Track& track : level.tracks) {
    for (auto& [id, share] : track.shares)
      id = intern(level, old[id]);
  }
  if (level.file->size() > 0 && level.file->size() + std::ssize(line) > budget_) {
    fs::path older = level.path;
    older.replace_extension(".old.jsonl");
    std::error_code error;
    fs::rename(level.path, older, error);
    if (error)
      return Error{ErrorCode::Io,
                   fmt::format("cannot move {}: {}", level.path.string(), error.message())};
    TEMPER_TRY(level.file, AppendFile::open(level.path, 0));
  }
  return level.file->append(line);
}

}  // namespace temper::orchestrator
