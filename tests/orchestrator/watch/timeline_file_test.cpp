#include "orchestrator/watch/timeline_file.hpp"

#include "core/json_document.hpp"
#include "orchestrator/scheduler/state/config.hpp"
#include "tests/support/temporary_folder.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <sstream>

namespace temper::orchestrator {
namespace {

using namespace std::chrono_literals;
using actors::CardState;

struct Slice {
  std::int64_t begin = 0, end = 0;
  std::string name;
  bool operator==(const Slice&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Slice& s) {
  return out << s.begin << ".." << s.end << " " << s.name;
}

/// The spans of an actor on a level, with equal neighbors merged. Fails if there is a gap.
std::vector<Slice> slices(const std::filesystem::path& folder, int level, std::size_t actor) {
  std::vector<Slice> out;
  for (const char* form : {"timeline/{}.old.jsonl", "timeline/{}.jsonl"}) {
    const auto text = read_file(folder / fmt::format(fmt::runtime(form), level));
    std::istringstream lines(text ? *text : "");
    for (std::string line; std::getline(lines, line);) {
      const auto block = parse_json_or_throw(line);
      for (const auto& track : block.at("t")) {
        if (track.at(0).get<std::size_t>() != actor)
          continue;
        auto at = track.at(1).get<std::int64_t>();
        for (std::size_t i = 2; i + 1 < track.size(); i += 2) {
          const auto& name = block.at("names").at(track.at(i + 1).get<std::size_t>());
          const auto on = name.at(1).get<std::string>();
          const Slice next{at,
                           at + track.at(i).get<std::int64_t>(),
                           name.at(0).get<std::string>() + (on.empty() ? "" : " " + on)};
          at = next.end;
          if (!out.empty()) {
            EXPECT_EQ(out.back().end, next.begin);
          }
          if (!out.empty() && out.back().name == next.name)
            out.back().end = next.end;
          else
            out.push_back(next);
        }
      }
    }
  }
  return out;
}

class TimelineFileTest : public ::testing::Test {
 protected:
  void open(Bytes budget = Bytes(64 << 20)) {
    file_ = std::move(TimelineFile::create(folder_.path(), budget)).value();
    ASSERT_TRUE(file_->put_in_place());
    SchedulerConfig config;
    config.actors = {{"rollout-0", actors::RoleKind::Rollout, {}, 4, false},
                     {"trainer", actors::RoleKind::Trainer, {}, 0, false}};
    feed(0s, event::Started{config});
  }
  void feed(Duration at, Event event, Commands commands = {}) {
    ASSERT_TRUE(file_->feed({0, Time(at), std::move(event), std::move(commands)}));
  }
  void waits(Duration at, std::uint32_t actor, CardState state, WaitCause cause = {}) {
    feed(at, event::DeadlineReached{}, {command::Waiting{ActorId(actor), state, cause}});
  }
  void works(Duration told, std::uint32_t actor, CardState state, Duration begin, Duration end) {
    feed(told, event::Activity{ActorId(actor), {{state, Time(begin), Time(end)}}, {}});
  }

  test::TemporaryFolder folder_;
  std::optional<TimelineFile> file_;
};

TEST_F(TimelineFileTest, WorkAndTheWaitsBetweenAreToldInOrder) {
  open();
  waits(1s, 0, CardState::WaitData, {WaitKind::Groups, GroupId(7), PolicyVersion(3), 1, 4});
  waits(3s, 0, CardState::Idle);
  works(4s, 0, CardState::Decode, 2s, 2500ms);
  ASSERT_TRUE(file_->close(Time(5s)));
  EXPECT_EQ(slices(folder_.path(), 0, 0),
            (std::vector<Slice>{{0, 1000, "down worker start"},
                                {1000, 2000, "wait-data groups: 7 (v0 3) and others, 1 of 4 ready"},
                                {2000, 2500, "decode"},
                                {2500, 3000, "wait-data groups: 7 (v0 3) and others, 1 of 4 ready"},
                                {3000, 5000, "idle"}}));
  EXPECT_EQ(slices(folder_.path(), 0, 1), (std::vector<Slice>{{0, 5000, "down worker start"}}));
}

TEST_F(TimelineFileTest, CoarserLevelsTellWhatWasDoneMost) {
  open();
  waits(0s, 0, CardState::Idle);
  // 40 of every 64 ms are work, so a bucket of level 2 is work, though it was divided.
  for (Duration at = 0ms; at < 6400ms; at += 8ms)
    works(at + 8ms, 0, CardState::Decode, at, at + 5ms);
  ASSERT_TRUE(file_->close(Time(6400ms)));
  EXPECT_EQ(slices(folder_.path(), 0, 0).size(), 1600U);
  EXPECT_EQ(slices(folder_.path(), 2, 0), (std::vector<Slice>{{0, 100, "decode"}}));
}

TEST_F(TimelineFileTest, CoarseLevelsNameTheKindOfAWaitAlone) {
  open();
  for (std::uint64_t i = 0; i < 40; ++i)
    waits(i * 100ms, 0, CardState::WaitData, {WaitKind::Groups, GroupId(i)});
  ASSERT_TRUE(file_->close(Time(4s)));
  EXPECT_EQ(slices(folder_.path(), 0, 0).size(), 40U);
  EXPECT_EQ(slices(folder_.path(), 2, 0).back().name, "wait-data groups");
}

TEST_F(TimelineFileTest, WhatIsFlushedInBetweenIsNotLostAndNotTwice) {
  open();
  waits(0s, 0, CardState::Idle);
  for (int i = 0; i < 1000; ++i) {
    works(i * 10ms + 7ms, 0, CardState::Decode, i * 10ms, i * 10ms + 7ms);
    if (i % 3 == 0) {
      ASSERT_TRUE(file_->flush());
    }
  }
  ASSERT_TRUE(file_->close(Time(10s)));
  const auto fine = slices(folder_.path(), 0, 0);
  EXPECT_EQ(fine.size(), 2000U);
  EXPECT_EQ(fine.back(), (Slice{9997, 10000, "idle"}));
  EXPECT_EQ(slices(folder_.path(), 3, 0), (std::vector<Slice>{{0, 20, "decode"}}));
}

TEST_F(TimelineFileTest, ALevelKeepsToItsBudgetAndLosesItsOldest) {
  open(Bytes(16 * 8192));
  waits(0s, 0, CardState::Idle);
  for (int i = 0; i < 20000; ++i) {
    works(i * 10ms + 7ms, 0, CardState::Decode, i * 10ms, i * 10ms + 7ms);
    if (i % 100 == 0) {
      ASSERT_TRUE(file_->flush());
    }
  }
  ASSERT_TRUE(file_->close(Time(200s)));
  std::uintmax_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path() / "timeline"))
    bytes += entry.file_size();
  EXPECT_LE(bytes, 16U * 8192U);
  const auto fine = slices(folder_.path(), 0, 0);
  EXPECT_GT(fine.front().begin, 100000);
  EXPECT_EQ(fine.back().end, 200000);
  EXPECT_EQ(slices(folder_.path(), 5, 0).front().begin, 0);
}

TEST_F(TimelineFileTest, AResumedRunIsDownUntilItsActorsAreBack) {
  open();
  works(1s, 0, CardState::Decode, 0s, 1s);
  feed(2s, event::Resumed{});
  waits(3s, 0, CardState::Idle);
  ASSERT_TRUE(file_->close(Time(4s)));
  EXPECT_EQ(slices(folder_.path(), 0, 0),
            (std::vector<Slice>{{0, 1000, "decode"},
                                {1000, 2000, "down worker start"},
                                {2000, 3000, "down worker restart"},
                                {3000, 4000, "idle"}}));
}

}  // namespace
}  // namespace temper::orchestrator
