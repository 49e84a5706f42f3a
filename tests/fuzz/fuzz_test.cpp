// Every fuzz target, over its corpus and over changes of it: bits flipped, bytes taken out, put in
// and doubled, parts of two inputs joined. TEMPER_FUZZ_INPUTS says how many for each (2000).
// TEMPER_FUZZ_SEEDS=FOLDER writes the valid inputs that are made here to FOLDER/TARGET, for
// libFuzzer: those in corpus/ are of the formats of their day.
#include "actors/protocol/catalog.hpp"
#include "cli/watch/live.hpp"
#include "core/files.hpp"
#include "core/json.hpp"
#include "core/msgpack.hpp"
#include "core/random.hpp"
#include "orchestrator/record/replay.hpp"
#include "tests/fuzz/targets.hpp"
#include "tests/support/scheduler_world.hpp"
#include "tests/support/seed.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace temper::fuzz {
namespace {

namespace fs = std::filesystem;

std::uint64_t inputs() {
  const char* text = std::getenv("TEMPER_FUZZ_INPUTS");
  return text == nullptr ? 2000 : std::strtoull(text, nullptr, 10);
}

template <class... Ts>
void add_messages(std::vector<std::string>& to, TypeList<Ts...>) {
  char which = 0;
  (to.push_back(std::string(1, which++) + encode(Ts{})), ...);
}

/// Answers to the two leases of the target `answers`, possible and not.
void add_answers(std::vector<std::string>& to) {
  const auto add = [&](char which, const auto& message) {
    to.push_back(std::string(1, which) + encode(message));
  };
  actors::Generated::Item item;
  item.lease = LeaseId(1);
  item.tokens = {7, 8};
  item.logprobs = {-1, -2};
  item.segments = {{PolicyVersion(0), Tokens(2)}};
  add(0, actors::Generated{{item}});
  item.mask = {0, 1};
  item.rewards = {0.5F, 1e18F};
  add(0, actors::Generated{{item}});
  item.response = ResponseId(1);
  item.logprobs = {-1000, 5};
  item.tokens = {-1, 1 << 30};
  add(0, actors::Generated{{item}});
  actors::Generated::Item empty;
  empty.lease = LeaseId(1);
  add(0, actors::Generated{{empty}});
  add(1, actors::ReferenceScored{LeaseId(2), {{-1, -2}, {-3, -4}}});
  add(1, actors::ReferenceScored{LeaseId(2), {{-1}, {-3e38F, 2}}});
  add(1, actors::ReferenceScored{LeaseId(2), {{-1, -2}, {-3, -4}}, {{{{7, 8}, {-1, -2}}}}});
  add(2, actors::Judged{LeaseId(2), {{1, ""}, {0, "it hangs"}}});
  add(2, actors::Judged{LeaseId(2), {{1e308, ""}, {-1e18, ""}}});
}

/// A live.json for the target `page_files`.
std::string live_file() {
  using namespace actors;
  cli::Live live;
  live.pid = 1;
  live.host = "elsewhere";
  live.steps = 100;
  live.rewards = {0.25, 0.5};
  live.summary.name = "first";
  live.summary.wall_s = 12;
  live.summary.cards = 2;
  live.summary.waits = {
      {RoleKind::Trainer, CardState::WaitData, "group N", 6, 0.25, 1, 3, "group 7"}};
  live.summary.utilization.states = {{CardState::WeightSync, 0.1}, {CardState::Switch, 0.2}};
  live.actors = {{"rollout-0", RoleKind::Rollout, CardState::Decode, "", 3, 4, 0}};
  live.cards = {{{0, 2}, {0}, {{CardState::Decode, 1.0}}, {{CardState::Decode, 0.5}}}};
  live.alarms = {{orchestrator::AlarmKind::SlowEngine, Time(), 2, "slow"}};
  return to_json(live);
}

/// Valid inputs of what is not text.
void add_made(std::string_view target, std::vector<std::string>& to) {
  using namespace orchestrator;
  if (target == "message")
    add_messages(to, actors::AllMessages{});
  if (target == "answers")
    add_answers(to);
  if (target == "drawn_answers") {
    Random random(5, "fuzz");
    for (int i = 0; i < 64; ++i) {
      std::string& bytes = to.emplace_back(48, '\0');
      std::ranges::generate(bytes, [&] { return static_cast<char>(random.below(256)); });
    }
  }
  if (target == "page_files")
    to.push_back(std::string(1, '\0') + live_file());
  if (target != "record" && target != "snapshot")
    return;
  Random random(5, "fuzz");
  SchedulerConfig config = orchestrator::testing::random_config(random);
  config.groups_per_update = config.responses_per_group = 2;
  const std::string sizes(1, 5);  // as the target is told of them
  Replay replay;
  orchestrator::testing::World world(config, {.crash = 0.1, .failed_sample = 0.1}, 5);
  world.on_record = [&](const Record& record) {
    EXPECT_TRUE(replay.feed(record));
    if (target == "record" && to.size() < 200)
      to.push_back(encode(record));
    if (target == "snapshot" && to.size() < 50)
      to.push_back(sizes + replay.scheduler().snapshot());
  };
  world.play();
}

/// Every so many of them, as `made-N`: neighbours resemble each other.
void write_seeds(std::string_view target, const std::vector<std::string>& made) {
  constexpr std::size_t kMost = 50;
  const char* folder = std::getenv("TEMPER_FUZZ_SEEDS");
  if (folder == nullptr || made.empty())
    return;
  const fs::path to = fs::path(folder) / target;
  ASSERT_TRUE(make_folder(to));
  const std::size_t stride = (made.size() + kMost - 1) / kMost;
  for (std::size_t i = 0; i < made.size(); i += stride)
    ASSERT_TRUE(write_file_atomically(to / fmt::format("made-{:03}", i), made[i]));
}

std::vector<std::string> corpus_of(std::string_view target) {
  std::vector<std::string> made;
  add_made(target, made);
  write_seeds(target, made);
  std::vector<std::string> corpus{"", std::string(64, '\0')};
  corpus.insert(corpus.end(), made.begin(), made.end());
  std::error_code none;
  const fs::path folder = fs::path(TEMPER_SOURCE_DIR) / "tests/fuzz/corpus" / target;
  for (const auto& entry : fs::directory_iterator(folder, none))
    corpus.push_back(read_file(entry.path()).value());
  std::ranges::sort(corpus);
  return corpus;
}

std::string changed(std::string bytes, const std::vector<std::string>& corpus, Random& random) {
  const auto place = [&] { return random.below(bytes.size() + 1); };
  for (std::uint64_t n = random.below(8); n > 0; --n) {
    switch (random.below(5)) {
      case 0:
        if (!bytes.empty())
          bytes[random.below(bytes.size())] ^= static_cast<char>(1 << random.below(8));
        break;
      case 1:
        bytes.insert(place(), 1, static_cast<char>(random.below(256)));
        break;
      case 2:
        bytes.erase(place(), random.below(9));
        break;
      case 3:
        bytes.insert(place(), bytes.substr(place(), random.below(33)));
        break;
      default: {
        const std::string& other = corpus[random.below(corpus.size())];
        bytes = bytes.substr(0, place()) + other.substr(random.below(other.size() + 1));
      }
    }
  }
  return bytes;
}

class EveryTarget : public ::testing::TestWithParam<Target> {};
INSTANTIATE_TEST_SUITE_P(Of, EveryTarget, ::testing::ValuesIn(kTargets), [](const auto& p) {
  return std::string(p.param.name);
});

TEST_P(EveryTarget, ReturnsWhateverItIsGiven) {
  const test::Seed seed;
  Random random(seed.value(), seed.stream());
  const std::vector<std::string> corpus = corpus_of(GetParam().name);
  for (const std::string& bytes : corpus)
    GetParam().run(bytes);
  for (std::uint64_t i = 0; i < inputs(); ++i)
    GetParam().run(changed(corpus[random.below(corpus.size())], corpus, random));
}

}  // namespace
}  // namespace temper::fuzz
