#include "orchestrator/watch/flat_metrics.hpp"

#include "core/files.hpp"
#include "core/json.hpp"
#include "core/json_document.hpp"
#include "orchestrator/metrics/metric_table.hpp"
#include "orchestrator/metrics/metrics_line.hpp"
#include "orchestrator/watch/tensorboard_file.hpp"
#include "tests/support/temporary_folder.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace temper::orchestrator {
namespace {

MetricsLine line_of_an_update() {
  MetricsLine line;
  line.update.version = PolicyVersion(7);
  line.update.metrics.reward_mean = 0.5;
  line.update.scored = true;
  line.update.metrics.entropy = 1.25;
  line.update.metrics.learning_rate = 1e-5;
  line.update.metrics.critic_loss = line.update.metrics.critic_value_mean = 0.5;
  line.update.metrics.critic_explained_variance = line.update.metrics.critic_clip_fraction = 0.25;
  line.update.metrics.experts.emplace();
  line.states = {{actors::CardState::Decode, 0.5},
                 {actors::CardState::Train, 0.25},
                 {actors::CardState::WaitData, 0.25}};
  line.evaluation.emplace().sources = {{.name = "math", .problems = 1}};
  line.update.batch.terms["right"].add(1);
  line.update.judges.emplace();
  line.update.batch.sources = {{.name = "math", .groups = 1, .responses = 1, .rewards = 1}};
  return line;
}

FlatMetrics flat_line() {
  return flatten_line(to_json_line(line_of_an_update())).value();
}

/// Every number of the line by its path, from the general parser.
void add_numbers(const nlohmann::json& value, const std::string& name, FlatMetrics& to) {
  if (value.is_number())
    to.emplace_back(name, value.get<double>());
  if (!value.is_object())
    return;
  for (const auto& [key, element] : value.items())
    add_numbers(element, name.empty() ? key : name + "/" + key, to);
}

std::optional<double> value_of(const FlatMetrics& flat, std::string_view name) {
  const auto it = std::ranges::find(flat, name, [](const auto& m) { return m.first; });
  return it == flat.end() ? std::nullopt : std::optional(it->second);
}

TEST(FlatMetrics, NestedNumbersAreNamedByTheirPath) {
  const FlatMetrics flat = flat_line();
  EXPECT_EQ(value_of(flat, "step"), 7);
  EXPECT_EQ(value_of(flat, "states/decode"), 0.5);
  EXPECT_EQ(value_of(flat, "tokens_per_s/raw"), 0);
}

TEST(FlatMetrics, BusyIsTheSumOfTheWorkingStatesAndWaitingThatOfTheWaits) {
  EXPECT_EQ(value_of(flat_line(), "busy"), 0.75);
  EXPECT_EQ(value_of(flat_line(), "waiting"), 0.25);
}

TEST(FlatMetrics, ALineIsReadAsTheWholeParserReadsIt) {
  const std::string line = to_json_line(line_of_an_update());
  FlatMetrics fast = flatten_line(line).value(), whole;
  std::erase_if(fast, [](const auto& m) { return m.first == "busy" || m.first == "waiting"; });
  add_numbers(parse_json(line), "", whole);
  std::ranges::sort(fast);
  std::ranges::sort(whole);
  EXPECT_EQ(fast, whole);
}

TEST(FlatMetrics, WhatIsNoWholeLineIsNone) {
  const std::string line = to_json_line(line_of_an_update());
  for (std::size_t length = 0; length < line.size(); ++length)
    EXPECT_EQ(flatten_line(std::string_view(line).substr(0, length)), std::nullopt) << length;
  for (const char* text : {"[1]",
                           "{\"a\":inf}",
                           "{\"a\":nan}",
                           "{\"a\":[1]}",
                           "{\"a\" 1}",
                           "{\"a\":1}x",
                           "{\"a\\\"\":1}",
                           "{a:1}"})
    EXPECT_EQ(flatten_line(text), std::nullopt) << text;
}

TEST(FlatMetrics, AnAliasHasTheValueOfOurs) {
  const FlatMetrics flat = with_aliases(flat_line(), {AliasTable::Trl, AliasTable::Verl});
  EXPECT_EQ(value_of(flat, "entropy"), 1.25);
  EXPECT_EQ(value_of(flat, "actor/entropy"), 1.25);
  EXPECT_EQ(value_of(flat, "critic/score/mean"), 0.5);
  EXPECT_EQ(value_of(flat, "off_policy/mean"), std::nullopt);
}

TEST(FlatMetrics, WhereOthersHaveSeveralNamesEachHasTheValue) {
  const FlatMetrics flat = with_aliases({{"rewards/min", -1}}, {AliasTable::Verl});
  EXPECT_EQ(
      flat,
      (FlatMetrics{{"rewards/min", -1}, {"critic/rewards/min", -1}, {"critic/score/min", -1}}));
}

TEST(FlatMetrics, EveryNumberOfALineHasASentence) {
  for (const auto& [name, value] : flat_line()) {
    const std::string family = name.substr(0, name.rfind('/') + 1) + "*";
    EXPECT_TRUE(std::ranges::any_of(metric_table(), [&, &n = name](const Metric& m) {
      return m.name == n || m.name == family;
    })) << name;
  }
}

TEST(FlatMetrics, EverySentenceIsAboutANumberOfALine) {
  const FlatMetrics flat = flat_line();
  for (const Metric& metric : metric_table()) {
    const bool family = metric.name.ends_with("/*");
    const std::string_view begin = metric.name.substr(0, metric.name.size() - (family ? 1 : 0));
    EXPECT_TRUE(std::ranges::any_of(flat, [&](const auto& m) {
      return family ? m.first.starts_with(begin) : m.first == metric.name;
    })) << metric.name;
  }
}

std::string names_as_markdown() {
  std::string text =
      "# Metrics\n\nGenerated from the table of metrics, `orchestrator/metrics/metric_table.cpp`: "
      "the figures of a line of\n`metrics.jsonl`. TensorBoard, Prometheus (`temper_` in front, `_` "
      "for `/`), the sidecars, the trace and\n`last_step` of `summary.json` use the same names. "
      "`tracking.aliases` adds the names of the last three\ncolumns, which exist only where the "
      "figure has the same meaning. [Watch a run](../how-to/watch.md) shows\nthe tools. A share is "
      "a number between 0 and 1.\n\n"
      "| name | unit | definition | trl | verl | prime-rl |\n|---|---|---|---|---|---|\n";
  const auto code = [](std::string_view names) {
    std::string quoted = names.empty() ? std::string() : fmt::format("`{}`", names);
    for (std::size_t at = 0; (at = quoted.find(' ', at)) != std::string::npos; at += 3)
      quoted.replace(at, 1, "` `");
    return quoted;
  };
  for (const Metric& metric : metric_table()) {
    std::string doc(metric.doc);
    for (std::size_t at = 0; (at = doc.find('|', at)) != std::string::npos; at += 2)
      doc.insert(at, "\\");
    text += fmt::format("| {} | {} | {} | {} | {} | {} |\n",
                        code(metric.name),
                        metric.unit,
                        doc,
                        code(metric.names.trl),
                        code(metric.names.verl),
                        code(metric.names.prime_rl));
  }
  return text;
}

void expect_current(const std::string& path, const std::string& text) {
  const std::filesystem::path file = std::filesystem::path(TEMPER_SOURCE_DIR) / path;
  if (std::getenv("TEMPER_UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(write_file_atomically(file, text));
  }
  const auto found = read_file(file);
  ASSERT_TRUE(found) << path;
  EXPECT_EQ(*found, text) << path << " is stale; TEMPER_UPDATE_GOLDEN=1 rewrites it";
}

TEST(MetricNames, TheTableOfPythonIsOurs) {
  expect_current("python/src/temper/metric_names.json", metric_table_json());
}
TEST(MetricNames, TheDocumentIsOurs) {
  expect_current("docs/reference/metrics.md", names_as_markdown());
}

TEST(Tensorboard, TheChecksumIsCrc32c) {
  // RFC 3720, B.4: 32 bytes of zeros, 32 bytes of ones.
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAU);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62A8AB43U);
}

/// The records of a file, each checked against its length.
std::vector<std::string> records_of(const std::string& file) {
  std::vector<std::string> records;
  for (std::size_t at = 0; at < file.size();) {
    std::uint64_t length = 0;
    std::memcpy(&length, file.data() + at, sizeof length);
    records.push_back(file.substr(at + 12, length));
    EXPECT_EQ(tensorboard_record(records.back()), file.substr(at, length + 16));
    at += length + 16;
  }
  return records;
}

std::string only_file(const std::filesystem::path& folder) {
  const std::filesystem::directory_iterator entries(folder);
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 1);
  return read_file(std::filesystem::directory_iterator(folder)->path()).value();
}

/// The steps of a file that TensorBoard shows: a record with a session log (field 7) of START drops
/// the steps from its own on.
std::vector<std::uint64_t> shown_steps(const std::string& file) {
  std::vector<std::uint64_t> shown;
  const auto records = records_of(file);
  for (std::size_t i = 1; i < records.size(); ++i) {
    // Field 1, a double; field 2, a step of one byte; then the contents of the record.
    EXPECT_EQ(records[i].at(9), '\x10');
    const auto step = static_cast<std::uint64_t>(records[i].at(10));
    if (records[i].substr(11) == std::string("\x3a\x02\x08\x01"))
      std::erase_if(shown, [&](std::uint64_t s) { return s >= step; });
    else
      shown.push_back(step);
  }
  return shown;
}

TEST(Tensorboard, AFileIsAVersionAndThenARecordPerUpdate) {
  const test::TemporaryFolder folder;
  auto file = TensorboardFile::create(folder.path(), 1000);
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->put_in_place());
  ASSERT_TRUE(file->add(1001, 7, {{"reward", 0.5}, {"bad", NAN}}));
  const auto entry = *std::filesystem::directory_iterator(folder.path() / "tensorboard");
  EXPECT_TRUE(entry.path().filename().string().starts_with("events.out.tfevents.1000."));
  const auto records = records_of(*read_file(entry.path()));
  ASSERT_EQ(records.size(), 3U) << "a version, a start, a step";
  EXPECT_NE(records[0].find("brain.Event:2"), std::string::npos);
  // Field 2: step 7. Field 5: a summary of 15 bytes: a value of 13 with a tag of 6 and a float.
  const std::string expected =
      std::string("\x10\x07\x2a\x0f\x0a\x0d\x0a\x06reward\x15", 15) + std::string("\0\0\0\x3f", 4);
  EXPECT_EQ(records[2].substr(9), expected);
}

TEST(Tensorboard, ShowsEveryStepOnceHoweverOftenTheRunWentBack) {
  using Steps = std::vector<std::uint64_t>;
  const std::pair<Steps, Steps> cases[] = {
      {{}, {}},
      {{1, 2, 3}, {1, 2, 3}},
      {{1, 2, 3, 2, 3, 4}, {1, 2, 3, 4}},  // A resume from 1.
      {{1, 2, 3, 3, 4}, {1, 2, 3, 4}},  // A resume from the last step, whose line was not written.
      {{1, 2, 1, 2}, {1, 2}},           // from the start
      {{1, 2, 3, 4, 3, 4, 3, 4, 5}, {1, 2, 3, 4, 5}},  // Twice to the same step.
      {{1, 2, 3, 4, 5, 4, 2, 3}, {1, 2, 3}},           // Further back each time.
      {{5, 6, 7, 6}, {5, 6}},                          // A file that begins later.
      {{1, 2, 3, 2}, {1, 2}},                          // Killed again at once.
      {{1, 1, 1}, {1}},                                // Never beyond the first step.
      {{1, 2, 9, 3, 4}, {1, 2, 3, 4}},                 // With a gap.
  };
  for (const auto& [written, shown] : cases) {
    const test::TemporaryFolder folder;
    auto file = TensorboardFile::create(folder.path(), 1000).value();
    for (const std::uint64_t step : written)
      ASSERT_TRUE(file.add(1000, step, {{"reward", 0.5}}));
    ASSERT_TRUE(file.put_in_place());
    EXPECT_EQ(shown_steps(only_file(folder.path() / "tensorboard")), shown);
  }
}

TEST(Tensorboard, ANewFileReplacesTheOldOneOnceItIsPutInItsPlace) {
  const test::TemporaryFolder folder;
  auto first = TensorboardFile::create(folder.path(), 1000).value();
  ASSERT_TRUE(first.put_in_place());
  ASSERT_TRUE(first.add(1000, 1, {{"reward", 0.5}}));
  const std::string before = only_file(folder.path() / "tensorboard");
  auto second = TensorboardFile::create(folder.path(), 2000).value();
  EXPECT_EQ(only_file(folder.path() / "tensorboard"), before);
  ASSERT_TRUE(second.put_in_place());
  EXPECT_NE(only_file(folder.path() / "tensorboard"), before);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "tensorboard.partial"));
}

}  // namespace
}  // namespace temper::orchestrator
