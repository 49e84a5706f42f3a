// The texts of the views against tests/golden/view. TEMPER_UPDATE_GOLDEN=1 rewrites the files;
// review the difference before you commit it.
#include "cli/view/parts.hpp"
#include "cli/view/terminal_view.hpp"
#include "core/files.hpp"
#include "orchestrator/metrics/report.hpp"
#include "orchestrator/scheduler/scheduler.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <set>

namespace temper::cli {

using namespace orchestrator;
namespace {

using namespace std::chrono_literals;
using actors::CardState;

void expect_golden(const std::string& name, const std::string& text) {
  const std::filesystem::path path =
      std::filesystem::path(TEMPER_SOURCE_DIR) / "tests/golden/view" / name;
  if (std::getenv("TEMPER_UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(write_file_atomically(path, text).has_value());
  }
  const auto expected = read_file(path);
  ASSERT_TRUE(expected.has_value()) << path;
  EXPECT_EQ(text, *expected) << text;
}

Frame sample_frame() {
  Frame f;
  f.name = "quickstart";
  f.subtitle = "separate, 2 cards, staleness bound 2";
  f.step = 187;
  f.steps = 300;
  f.elapsed = 161s;
  f.left = 97s;
  for (int i = 0; i < 187; ++i)
    f.rewards.push_back(0.31 + 0.58 / (1 + std::exp(-(i - 70) / 22.0)) + 0.02 * ((i * 7) % 5 - 2));
  f.last_step = {{"entropy", 0.41},
                 {"kl", 0.00231},
                 {"clip_fraction", 0},
                 {"gradient_norm", 0.873},
                 {"length/mean", 7061.2},
                 {"length/max", 32768},
                 {"equal_groups", 0.25}};
  f.recent = {21430, 18220, 9410};
  CardFrame rollout{CardId(0), {}};
  rollout.shares[index_of(CardState::Decode)] = 0.82;
  rollout.shares[index_of(CardState::Prefill)] = 0.05;
  rollout.shares[index_of(CardState::WaitQuota)] = 0.1;
  rollout.shares[index_of(CardState::WeightSync)] = 0.03;
  CardFrame trainer{CardId(1), {}};
  trainer.shares[index_of(CardState::Train)] = 0.57;
  trainer.shares[index_of(CardState::Reference)] = 0.13;
  trainer.shares[index_of(CardState::Reward)] = 0.02;
  trainer.shares[index_of(CardState::WaitData)] = 0.23;
  trainer.shares[index_of(CardState::Idle)] = 0.05;
  f.cards = {rollout, trainer};
  f.slots = 128;
  f.slots_held = 96;
  f.slots_mean = 0.82;
  f.bound = 2;
  f.staleness_mean = 1.42;
  f.staleness = {{0, 1400}, {1, 4130}, {2, 6438}};
  f.actors = {{"rollout-0", CardState::Decode, "", 512, 1024, 0},
              {"reference-0", CardState::WaitData, "responses", 0, 0, 0},
              {"reward-0", CardState::Reward, "", 256, 0, 1},
              {"trainer-0",
               CardState::WaitData,
               "groups: 11969 (v0 186) and others, 41 of 64 ready",
               0,
               0,
               0}};
  f.queue = {96, 23, 41, 0};
  f.restarts = 1;
  f.checkpoints = 3;
  return f;
}

Summary sample_summary() {
  Summary s;
  s.ok = true;
  s.steps = 300;
  s.wall_s = 251.4;
  s.reward = {0.312, 0.934, 0.941};
  s.tokens.generated_per_s = 21500;
  s.tokens.trained_per_s = 18100;
  s.tokens.effective_per_s = 9990;
  s.tokens.trained_per_s_per_card = 9050;
  s.utilization.busy = 0.81;
  s.slots = {128, 0.61, 0.82};
  s.staleness.bound = 2;
  s.staleness.max = 2;
  s.staleness.mean = 1.4;
  s.waits = {
      {actors::RoleKind::Trainer, CardState::WaitData, "group N of N", 80, 0.11, 1, 2, ""},
      {actors::RoleKind::Rollout, CardState::WaitQuota, "staleness bound", 30, 0.06, 1, 2, ""}};
  s.wasted_tokens = 12345;
  s.restarts.resize(1);
  return s;
}

/// The nearest of the 216 colors and 24 grays of a terminal to "#rrggbb".
int nearest_color(const std::string& hex) {
  const auto part = [&](std::size_t at) { return std::stoi(hex.substr(at, 2), nullptr, 16); };
  const std::array<int, 3> wanted{part(1), part(3), part(5)};
  constexpr std::array<int, 6> kLevels{0, 95, 135, 175, 215, 255};
  int best = -1, least = 0;
  for (int color = 16; color < 256; ++color) {
    const auto level = [&](int by) {
      return color < 232 ? kLevels[static_cast<std::size_t>((color - 16) / by % 6)]
                         : 8 + 10 * (color - 232);
    };
    int distance = 0;
    for (const auto& [is, at] : {std::pair{level(36), 0U}, {level(6), 1U}, {level(1), 2U}})
      distance += (is - wanted[at]) * (is - wanted[at]);
    if (best < 0 || distance < least)
      best = color, least = distance;
  }
  return best;
}

TEST(View, AStateHasTheColorThatItHasOnThePageAndNoOtherStateHasIt) {
  const auto css = read_file(std::filesystem::path(TEMPER_SOURCE_DIR) / "web/src/page.css");
  ASSERT_TRUE(css);
  const std::size_t dark = css->find("prefers-color-scheme: dark");
  std::set<int> seen;
  for (const auto& [state, name] : EnumNames<CardState>::value) {
    const std::string key = fmt::format("--s-{}: ", name);
    const std::string hex = css->substr(css->find(key, dark) + key.size(), 7);
    EXPECT_EQ(paint_of(state).foreground, nearest_color(hex)) << name << " is " << hex;
    EXPECT_TRUE(seen.insert(paint_of(state).foreground).second) << name;
  }
}

TEST(View, AFrameOnAWideTerminal) {
  expect_golden("frame_100.txt", render_frame(sample_frame(), 100, Colours::Off));
}
TEST(View, AFrameInColour) {
  expect_golden("frame_100_colour.txt", render_frame(sample_frame(), 100, Colours::On));
}
TEST(View, AFrameOnANarrowTerminal) {
  expect_golden("frame_60.txt", render_frame(sample_frame(), 60, Colours::Off));
}
TEST(View, AFrameBeforeTheFirstUpdateAndOfManyCards) {
  Frame f = sample_frame();
  f.step = 0;
  f.left.reset();
  f.rewards.clear();
  f.last_step.clear();
  f.recent = {};
  f.staleness.clear();
  f.staleness_mean = 0;
  for (std::uint32_t i = 2; i < 384; ++i)
    f.cards.push_back({CardId(i), f.cards[i % 2].shares});
  for (int i = 1; i < 40; ++i) {
    f.actors.push_back({"rollout-" + std::to_string(i),
                        CardState::Down,
                        "worker start",
                        0,
                        64,
                        0,
                        WaitKind::Start});
  }
  expect_golden("frame_start.txt", render_frame(f, 100, Colours::Off));
}
TEST(View, AnEmptyFrameCanBeDrawn) {
  EXPECT_FALSE(render_frame({}, 1, Colours::On).empty());
}
TEST(View, AFrameOfASimulatedRunSaysThatItsTimeIsAndThatNothingLearns) {
  Frame f = sample_frame();
  f.simulated = f.drawn = true;
  const std::string text = render_frame(f, 80, Colours::Off);
  EXPECT_NE(text.find("2:41 simulated, 1:37 left"), std::string::npos) << text;
  EXPECT_NE(text.find("random values"), std::string::npos) << text;
  EXPECT_NE(render_line(f).find("2:41 simulated, step"), std::string::npos) << render_line(f);
}
TEST(View, OfManyActorsTheTrainerIsShownAndAsManyAsHaveRoom) {
  Frame f = sample_frame();
  f.restarts = 0;
  f.actors.pop_back();
  for (int i = 1; i < 40; ++i) {
    f.actors.push_back({"rollout-" + std::to_string(i),
                        CardState::Down,
                        "worker start",
                        0,
                        64,
                        0,
                        WaitKind::Start});
  }
  f.actors.push_back({"trainer", CardState::Train, "", 0, 0, 0});
  for (const std::size_t rows : {24U, 40U, 60U}) {
    const std::string text = render_frame(f, 80, Colours::Off, rows);
    EXPECT_LE(std::ranges::count(text, '\n'), static_cast<std::ptrdiff_t>(rows)) << text;
    EXPECT_NE(text.find("  trainer "), std::string::npos) << text;
    EXPECT_EQ(text.find("down"), std::string::npos) << "nobody was lost: " << text;
  }
}
TEST(View, AFigureIsShownWholeOrNotAtAll) {
  for (std::size_t width = 30; width < 120; ++width) {
    const std::string text = render_frame(sample_frame(), width, Colours::Off);
    for (const std::string_view figure : {"raw 21.4k", "trained 18.2k", "effective 9.41k"}) {
      const std::string_view name = figure.substr(0, figure.find(' ') + 1);
      EXPECT_EQ(text.find(name) != std::string::npos, text.find(figure) != std::string::npos)
          << width << "\n"
          << text;
    }
    EXPECT_EQ(text.find("per card ") != std::string::npos,
              text.find("per card 9.11k") != std::string::npos)
        << width << "\n"
        << text;
  }
}
TEST(View, TheEndNamesTheRunAndWhatToAskOfItHoweverNarrowTheTerminalIs) {
  const std::string run = "/home/someone/experiments/runs/a-run-with-a-long-name-20260131-120000";
  const std::string text = render_closing(sample_summary(), {run}, 40, Colours::Off);
  for (const char* command : {"temper report ", "temper audit "})
    EXPECT_NE(text.find(command + run + "\n"), std::string::npos) << text;
}
TEST(View, ALineOfManyCardsHasTheirMean) {
  Frame f = sample_frame();
  for (std::uint32_t i = 2; i < 384; ++i)
    f.cards.push_back({CardId(i), f.cards[i % 2].shares});
  EXPECT_NE(render_line(f).find("busy% 80 "), std::string::npos) << render_line(f);
}
TEST(View, ALineOfKeyFigures) {
  expect_golden("line.txt", render_line(sample_frame()) + "\n");
}
TEST(View, FailuresAndLiesShowWhileARunGoesOn) {
  Frame f = sample_frame();
  f.responses_failed = 80;
  f.groups_failed = 20;
  f.last_failure = "group 19: 0 of its 4 responses are left; last: the verifier ended";
  f.protocol_violations = 1;
  EXPECT_TRUE(render_line(f).ends_with(" failed 80 (20 groups) protocol violations 1"))
      << render_line(f);
  const std::string text = render_frame(f, 100, Colours::Off);
  EXPECT_NE(
      text.find("protocol violations 1  responses failed 80  groups failed 20  group 19: 0 of"),
      std::string::npos)
      << text;
}
TEST(View, TheClosingSummary) {
  expect_golden("closing.txt",
                render_closing(sample_summary(), {"runs/quickstart-20260131"}, 100, Colours::Off));
}
TEST(View, TheClosingSummaryOfASimulatedRunSaysWhatItUsed) {
  using actors::RoleKind;
  Summary s = sample_summary();
  s.mfu = MfuSummary{
      1e18,
      1e17,
      0.087,
      {{RoleKind::Rollout, {1e17, 0.023, 0.031}}, {RoleKind::Trainer, {9e17, 0.166, 0.273}}}};
  constexpr std::int64_t kGb = 1'000'000'000;
  s.memory = {{RoleKind::Rollout, {{50 * kGb, 61 * kGb, 64 * kGb}, {}}},
              {RoleKind::Trainer, {{23 * kGb, 24 * kGb, 64 * kGb}, {}}}};
  s.network = NetworkSummary{
      {{"node", 1000, 10, 0.032, {}}, {"rdma", 0, 0, 0, {}}, {"to host", 10, 1, 0.0001, {}}}};
  expect_golden(
      "closing_simulated.txt",
      render_closing(s, {"runs/cm384-20260131", "trace.json.gz", true}, 100, Colours::Off));
}
/// "99 % busy" of cards that hold a few responses each sells what is not there.
TEST(View, TheEndSaysWhereBusyMisleads) {
  struct Case {
    double busy;
    std::optional<double> mfu;
    double slots;
    bool misleads;
  };
  for (const Case& c : {Case{0.99, 0.104, 0.2, true},
                        {0.85, 0.104, 0.2, true},
                        {0.85, 0.104, 0.9, true},
                        {0.85, {}, 0.2, true},
                        {0.85, {}, 0.9, false},
                        {0.85, 0.45, 0.9, false},
                        {0.85, 0.45, 0.4, true},
                        {0.5, 0.1, 0.2, false},
                        {0.5, {}, 0.9, false},
                        {1, 0.31, 0.5, false}}) {
    Summary s = sample_summary();
    s.utilization.busy = c.busy;
    s.slots.while_serving = c.slots;
    if (c.mfu)
      s.mfu = MfuSummary{1, 1, *c.mfu, {}};
    const std::string text = use_text(s);
    EXPECT_EQ(text.find("however little") != std::string::npos, c.misleads) << text;
    EXPECT_EQ(text.find("MFU") != std::string::npos, c.mfu.has_value()) << text;
    EXPECT_NE(render_closing(s, {"runs/x"}, 100, Colours::Off).find(text), std::string::npos);
    EXPECT_NE(summary_text(s).find(text), std::string::npos) << "the report names it alike";
  }
}
TEST(View, TheEndSaysHowMuchOfAShortRunWasItsStart) {
  for (const auto& [start, said] :
       {std::pair{0.0, false}, {1.0, false}, {12.0, false}, {20.0, true}, {150.0, true}}) {
    Summary s = sample_summary();
    s.start_s = start;
    EXPECT_EQ(
        render_closing(s, {"runs/x"}, 100, Colours::Off).find("startup took") != std::string::npos,
        said)
        << start;
    EXPECT_EQ(starting_matters(s), said);
  }
}
TEST(View, TheClosingSummaryOfAFailedRunNamesTheReason) {
  Summary s = sample_summary();
  s.ok = false;
  s.reason = "trainer-0 was lost 4 times; last: killed by signal 9";
  const std::string text = render_closing(s, {"runs/x"}, 100, Colours::Off);
  EXPECT_NE(text.find("failed after 300 steps"), std::string::npos) << text;
  EXPECT_NE(text.find(s.reason), std::string::npos) << text;
}

TEST(View, TheClosingSummaryNamesTheTimeInWhichEnginesWaitedForTools) {
  Summary s = sample_summary();
  s.utilization.states[CardState::WaitTools] = 0.4;
  const std::string text = render_closing(s, {"runs/x"}, 100, Colours::Off);
  EXPECT_NE(text.find("wait-tools 40 %"), std::string::npos) << text;
}

TEST(View, ThatSomebodyHadARunGoOnIsNoTrouble) {
  Summary s = sample_summary();
  s.wasted_tokens = 0;
  s.restarts[0].kind = Restart::Kind::Resume;
  const std::string text = render_closing(s, {"runs/x"}, 100, Colours::Off);
  EXPECT_EQ(text.find("trouble"), std::string::npos) << text;
}

TEST(View, NoLineIsWiderThanTheTerminal) {
  for (std::size_t width = 20; width < 140; ++width) {
    const std::string text = render_frame(sample_frame(), width, Colours::Off);
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = text.find('\n', begin);
      ASSERT_LE(display_width(text.substr(begin, end - begin)), width) << text;
      begin = end + 1;
    }
  }
}

TEST(View, ControlCharactersInNamesDoNotReachTheTerminal) {
  Frame f = sample_frame();
  f.name = "evil\x1b[2J";
  EXPECT_EQ(render_frame(f, 100, Colours::Off).find('\x1b'), std::string::npos);
}

std::string written(const std::function<void(int)>& to) {
  std::array<int, 2> ends{};
  EXPECT_EQ(pipe(ends.data()), 0);
  to(ends[1]);
  close(ends[1]);
  std::string text;
  std::array<char, 4096> buffer{};
  for (ssize_t n; (n = read(ends[0], buffer.data(), buffer.size())) > 0;)
    text.append(buffer.data(), static_cast<std::size_t>(n));
  close(ends[0]);
  return text;
}

TEST(TerminalView, WithoutATerminalItPrintsAPlainLineEveryFewSeconds) {
  SchedulerConfig config;
  config.actors = {{"rollout-0", actors::RoleKind::Rollout, {CardId(0)}, 1},
                   {"trainer-0", actors::RoleKind::Trainer, {CardId(1)}, 0}};
  const std::string text = written([&](int fd) {
    ManualClock wall;
    TerminalView view(detect_view(fd, OutputForm::Auto), wall);
    Scheduler scheduler;
    RunMetrics metrics;
    const Event started = event::Started{config};
    metrics.feed({0, Time{}, started, scheduler.on(started, Time{})});
    for (int i = 0; i < 50; ++i) {  // 10 s
      view.refresh(metrics, {scheduler.state(), scheduler.phase(), wall.now()});
      wall.advance(200ms);
    }
    view.close(metrics, summarize(metrics, {}));
  });
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  // One at once, none while nothing changes, one at the end.
  EXPECT_EQ(text.find("0:00 step 0/1"), text.find("step") - 5);
  std::size_t lines = 0;
  for (std::size_t at = text.find("step 0/1"); at != std::string::npos;
       at = text.find("step 0/1", at + 1))
    ++lines;
  EXPECT_EQ(lines, 2U) << text;
}

// --- The map of the cards

std::vector<CardId> cards_between(std::uint32_t begin, std::uint32_t end) {
  std::vector<CardId> cards;
  for (std::uint32_t card = begin; card < end; ++card)
    cards.emplace_back(card);
  return cards;
}

/// Two engines, a reference and a trainer on `nodes` x 8 cards; the engines' cards are as busy as
/// their number says.
CardMap sample_map(const MachineShape& machine, std::uint32_t nodes) {
  using actors::RoleKind;
  const std::uint32_t cards = nodes * 8, half = cards / 2;
  const std::vector<ActorSpec> specs{
      {"rollout-0", RoleKind::Rollout, cards_between(0, half / 2), 1},
      {"rollout-1", RoleKind::Rollout, cards_between(half / 2, half), 1},
      {"reference-0", RoleKind::Reference, cards_between(half, half + 12), 0},
      {"trainer", RoleKind::Trainer, cards_between(half + 8, cards), 0}};
  Summary s;
  for (std::uint32_t card = 0; card < cards; ++card) {
    CardSummary c;
    c.card = CardId(card);
    c.busy = card < half ? static_cast<double>(card) / half : card < half + 12 ? 0.95 : 0.5;
    s.utilization.per_card.push_back(c);
  }
  return make_card_map(s, specs, {machine});
}

TEST(View, TheMapOfOneSupernodeHasACellForEachCard) {
  expect_golden("cards_48x8.txt", render_card_map(sample_map({8, 48}, 48), 100, Colours::Off));
  expect_golden("cards_48x8_80.txt", render_card_map(sample_map({8, 48}, 48), 80, Colours::Off));
  expect_golden("cards_48x8_colour.txt", render_card_map(sample_map({8, 48}, 48), 80, Colours::On));
}
TEST(View, TheMapOfSeveralSupernodesHasOneBelowTheOther) {
  expect_golden("cards_2x4x8.txt", render_card_map(sample_map({8, 4}, 6), 100, Colours::Off));
}
TEST(View, AMapThatIsTooLargeShowsMeans) {
  // 20 supernodes x 8 cards exceed kMostMapLines; 40 nodes exceed the width of 40.
  const std::string text = render_card_map(sample_map({8, 40}, 800), 40, Colours::Off);
  expect_golden("cards_20x40x8.txt", text);
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), std::ptrdiff_t{kMostMapLines});
}
TEST(View, ARunWithoutCardsHasNoMap) {
  EXPECT_EQ(render_card_map(make_card_map({}, {}, {}), 100, Colours::Off), "");
}

}  // namespace
}  // namespace temper::cli
