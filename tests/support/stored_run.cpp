#include "tests/support/stored_run.hpp"

#include "core/files.hpp"
#include "orchestrator/metrics/recorder.hpp"
#include "orchestrator/record/replay.hpp"
#include "orchestrator/run/best_checkpoint.hpp"
#include "tests/support/scheduler_world.hpp"

#include <gtest/gtest.h>

#include <fstream>

namespace temper::orchestrator::testing {
namespace {

namespace fs = std::filesystem;

SchedulerConfig config_of(const StoredRunOptions& options) {
  Random random(4, "stored run");
  SchedulerConfig config = random_config(random);
  config.steps = options.steps;
  config.checkpoint_every = options.checkpoint_every;
  config.groups_per_update = 1;
  config.responses_per_group = 2;
  config.staleness_bound = 1;
  config.staleness_rule = StalenessRuleKind::Exact;
  config.filter_equal_rewards = false;
  config.problems = options.problems;
  config.evaluation = options.keeps_best ? EvaluationPlan{1, 4, 4, 0.5, true} : EvaluationPlan{};
  for (std::uint32_t a = 0; a < config.actors.size(); ++a)
    config.actors[a].cards = {CardId(a)};
  return config;
}

/// Over what is there: a file that is cut to nothing first goes to the disk each time it is closed
/// (ext4), and a test does this thousands of times.
void write(const fs::path& file, std::string_view content) {
  std::fstream(file, std::ios::binary | std::ios::in | std::ios::out)
      .write(content.data(), static_cast<std::streamsize>(content.size()));
  fs::resize_file(file, content.size());
}

}  // namespace

StoredRun::StoredRun(const StoredRunOptions& options) : config_(config_of(options)) {
  EXPECT_TRUE(dir().create());
  EXPECT_TRUE(write_file_atomically(root() / "config.yaml", "name: run\nseed: 3\n"));
  EXPECT_TRUE(dir().seal_inputs());
  play(options);
}

void StoredRun::play(const StoredRunOptions& options) {
  EventLog events = EventLog::create(log(), {.file_bytes = options.log_file_bytes}).value();
  auto recorder = RunRecorder::create(root()).value();
  Replay replay;
  std::uint64_t last = UINT64_MAX;
  positions_.push_back(events.position());
  World world(config_, {}, options.seed);
  BestCheckpoint best(root());
  world.on_record = [&](const Record& record) {
    if (record.sequence > last)
      return;
    EXPECT_TRUE(replay.feed(record));
    EXPECT_TRUE(events.append(record));
    positions_.push_back(events.position());
    if (const auto* saved = std::get_if<event::CheckpointSaved>(&record.event)) {
      const fs::path partial = dir().checkpoints().begin(saved->version).value();
      std::ofstream(partial / "trainer.json") << saved->version.value();
      CheckpointState state{record.sequence, saved->version, replay.scheduler().snapshot(), {}};
      state.payloads[GroupId(9)].prompt = "2+2=";
      if (options.save)
        options.save(partial, saved->version);
      EXPECT_TRUE(dir().checkpoints().complete(state, events.position(), options.keep));
      const bool evaluates = replay.scheduler().evaluation().version() == saved->version;
      if (options.keeps_best) {
        EXPECT_TRUE(
            best.saved(saved->version, dir().checkpoints().folder_of(saved->version), evaluates));
      }
      if (options.killed_after && saved->version.value() + 1 == options.steps)
        last = record.sequence + *options.killed_after;
    }
    recorder->feed(record);
    for (const Command& command : record.commands) {
      const auto* result = std::get_if<command::Evaluated>(&command);
      if (result == nullptr || !options.keeps_best)
        continue;
      if (result->best && result->version.value() > 0)
        bests_.push_back(*result);
      if (result->best && options.killed_at_best == std::ssize(bests_)) {
        last = record.sequence;
      } else {
        EXPECT_TRUE(best.found(*result));
      }
    }
  };
  const Played played = world.play();
  EXPECT_TRUE(played.finish.ok) << played.why();
  if (last == UINT64_MAX) {
    EXPECT_TRUE(recorder->close({"run", 3, events.hash()}));
  }
}

Damaged::Damaged(fs::path file, std::string before, const std::string& now)
    : file_(std::move(file)), before_(std::move(before)) {
  write(file_, now);
}

Damaged::~Damaged() {
  write(file_, before_);
}

Damaged Damaged::flipped(const fs::path& file, std::size_t byte) {
  std::string content = read_file(file).value();
  std::string now = content;
  now.at(byte) = static_cast<char>(now.at(byte) ^ (1 << (byte % 8)));
  return Damaged(file, std::move(content), now);
}

Damaged Damaged::truncated(const fs::path& file, std::size_t length) {
  std::string content = read_file(file).value();
  const std::string now = content.substr(0, length);
  return Damaged(file, std::move(content), now);
}

}  // namespace temper::orchestrator::testing
