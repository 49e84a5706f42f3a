// certificates.jsonl and its audit: the file of any run is accepted, and every change to it is
// reported.
#include "core/files.hpp"
#include "core/json_document.hpp"
#include "orchestrator/metrics/certificate_file.hpp"
#include "orchestrator/record/certificate_audit.hpp"
#include "tests/support/scheduler_world.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// A random run, with its certificates in a file and an auditor that saw its records.
class CertifiedRun {
 public:
  CertifiedRun(std::uint64_t seed, const testing::Chaos& chaos, SchedulerConfig config)
      : path_(fs::path(::testing::TempDir()) /
              fmt::format("certificates_{}_{}.jsonl", static_cast<long>(::getpid()), seed)) {
    auto file = CertificateFile::create(path_).value();
    testing::World world(std::move(config), chaos, seed);
    RunMetrics metrics;
    world.on_record = [&](const Record& record) {
      auditor_.feed(record);
      metrics.feed(record);
      EXPECT_TRUE(file.feed(record, metrics));
      resumes += std::holds_alternative<event::Resumed>(record.event) ? 1 : 0;
    };
    world.play();
    EXPECT_TRUE(file.close());
    report = auditor_.report();
  }
  ~CertifiedRun() { fs::remove(path_); }

  std::vector<std::string> lines() const {
    std::istringstream in(read_file(path_).value());
    std::vector<std::string> out;
    for (std::string line; std::getline(in, line);)
      out.push_back(line);
    return out;
  }
  std::vector<std::string> audit() const {
    return audit_certificates(path_, auditor_.batches(), report);
  }
  std::vector<std::string> audit_of(const std::vector<std::string>& lines) const {
    std::string text;
    for (const std::string& line : lines)
      text += line + "\n";
    EXPECT_TRUE(write_file_atomically(path_, text));
    return audit();
  }
  const AuditedBatches& batches() const { return auditor_.batches(); }

  AuditReport report;
  int resumes = 0;

 private:
  const fs::path path_;
  Auditor auditor_;
};

SchedulerConfig small_config() {
  Random random(4, "certificates");
  SchedulerConfig config = testing::random_config(random);
  config.steps = 6;
  config.groups_per_update = 3;
  config.staleness_bound = 2;
  config.staleness_rule = StalenessRuleKind::Exact;
  return config;
}

TEST(Certificates, ThereIsALinePerUpdateAndItSaysWhatWasTrained) {
  const CertifiedRun run(1, {}, small_config());
  ASSERT_EQ(run.report.steps, 6U);
  const auto lines = run.lines();
  ASSERT_EQ(lines.size(), 6U);
  for (std::uint64_t step = 0; step < 6; ++step) {
    const json line = parse_json_or_throw(lines[step]);
    EXPECT_EQ(line.at("step"), step);
    EXPECT_EQ(line.at("bound"), 2);
    ASSERT_EQ(line.at("groups").size(), 3U);
    std::uint64_t most = 0, sum = 0;
    for (const json& group : line.at("groups")) {
      const std::uint64_t age = group.at("age"), v0 = group.at("v0"), oldest = group.at("oldest");
      EXPECT_EQ(age + v0, step);
      EXPECT_GE(oldest, v0);
      EXPECT_GE(group.at("newest"), oldest);
      EXPECT_LE(group.at("newest"), step);
      most = std::max(most, age);
      sum += age;
    }
    EXPECT_EQ(line.at("age_max"), most);
    EXPECT_NEAR(line.at("age_mean").get<double>(), static_cast<double>(sum) / 3, 1e-12);
  }
  EXPECT_EQ(run.audit(), std::vector<std::string>{});
}

TEST(Certificates, AfterCrashesAndRollbacksTheyAreThoseOfTheUpdatesThatCount) {
  int resumes = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Random random(seed, "certificates");
    const SchedulerConfig config = testing::random_config(random);
    const CertifiedRun run(seed,
                           {.crash = 0.02,
                            .trainer_crash = 0.05,
                            .hang = 0.01,
                            .late_result = 0.3,
                            .failed_sample = 0.1},
                           config);
    ASSERT_EQ(run.report.violations, std::vector<std::string>{}) << "seed " << seed;
    ASSERT_EQ(run.lines().size(), run.report.steps) << "seed " << seed;
    ASSERT_EQ(run.audit(), std::vector<std::string>{}) << "seed " << seed;
    resumes += run.resumes;
  }
  EXPECT_GT(resumes, 20);
}

/// The violations after a change of line `at`.
template <class Change>
std::vector<std::string> tampered(const CertifiedRun& run, std::size_t at, Change change) {
  auto lines = run.lines();
  const auto kept = lines;
  json line = parse_json_or_throw(lines.at(at));
  change(line);
  lines[at] = line.dump();
  auto said = run.audit_of(lines);
  EXPECT_EQ(run.audit_of(kept), std::vector<std::string>{});
  return said;
}

using Said = std::vector<std::string>;

TEST(Certificates, AChangedFigureIsNamedWithItsStepAndGroup) {
  const CertifiedRun run(1, {}, small_config());
  const AuditedBatch batch = run.batches().at(4);
  const std::uint64_t group = batch.groups[1].id, v0 = batch.groups[1].dispatched;
  const auto entry = [&](json& line) -> json& {
    return *std::ranges::find_if(line.at("groups"),
                                 [&](const json& g) { return g.at("group") == group; });
  };
  const std::string where = fmt::format("certificates.jsonl: step 4, group {}: ", group);
  EXPECT_EQ(tampered(run, 4, [&](json& l) { entry(l)["v0"] = v0 + 1; }),
            Said{fmt::format("{}v0: found {}, expected {} from events.log", where, v0 + 1, v0)});
  EXPECT_EQ(tampered(run, 4, [&](json& l) { entry(l)["age"] = 9; }),
            (Said{fmt::format("{}age: found 9, expected {} from events.log", where, 4 - v0),
                  where + "age 9 exceeds the bound 2"}));
  EXPECT_EQ(tampered(run, 4, [&](json& l) { entry(l)["newest"] = nullptr; }).size(), 1U);
  EXPECT_EQ(tampered(run, 4, [&](json& l) { l.erase("bound"); }),
            Said{"certificates.jsonl: step 4: bound: found missing, expected 2 from events.log"});
  EXPECT_EQ(tampered(run, 4, [&](json& l) { l["age_mean"] = 0.125; }).size(), 1U);
  EXPECT_EQ(tampered(run, 4, [&](json& l) { l["age_max"] = 7; }).size(), 1U);
  EXPECT_EQ(tampered(run, 4, [&](json& l) { l["versions"]["oldest"] = 77; }).size(), 1U);
}

TEST(Certificates, AnotherGroupIsNamed) {
  const CertifiedRun run(1, {}, small_config());
  const std::uint64_t first = run.batches().at(2).groups[0].id;
  EXPECT_EQ(
      tampered(run,
               2,
               [&](json& l) {
                 for (json& g : l.at("groups")) {
                   if (g.at("group") == first)
                     g["group"] = 999;
                 }
               }),
      (Said{fmt::format("certificates.jsonl: step 2, group {}: trained, but not in the "
                        "certificate",
                        first),
            "certificates.jsonl: step 2, group 999: certified, but not trained in that step"}));
  EXPECT_EQ(tampered(run, 2, [&](json& l) { l["groups"].push_back(l["groups"][0]); }).size(), 1U);
}

TEST(Certificates, LinesThatAreMissingOrTooManyAreNamed) {
  const CertifiedRun run(1, {}, small_config());
  const auto lines = run.lines();
  auto fewer = lines;
  fewer.erase(fewer.begin() + 3);
  EXPECT_EQ(
      run.audit_of(fewer),
      Said{fmt::format(
          "certificates.jsonl: step 3: no certificate for its 3 groups, the first of which is {}",
          run.batches().at(3).groups[0].id)});
  auto more = lines;
  more.push_back(lines[1]);
  EXPECT_EQ(run.audit_of(more), Said{"certificates.jsonl: step 1: certified more than once"});
  auto later = parse_json_or_throw(lines[5]);
  later["step"] = 6;
  more.back() = later.dump();
  EXPECT_EQ(run.audit_of(more),
            Said{"certificates.jsonl: step 6: certified, but events.log has no such step"});
  more.back() = "{\"step\": 3";
  EXPECT_EQ(run.audit_of(more), Said{"certificates.jsonl: line 7 is not a certificate"});
}

TEST(Certificates, WhereTheRunDidNotEndTheLastLineMayBeMissing) {
  const CertifiedRun run(1, {}, small_config());
  AuditReport cut_off = run.report;
  cut_off.ended = false;
  auto lines = run.lines();
  lines.pop_back();
  const fs::path path = fs::path(::testing::TempDir()) /
                        fmt::format("certificates_cut_{}", static_cast<long>(::getpid()));
  const auto audit = [&] {
    std::string text;
    for (const std::string& line : lines)
      text += line + "\n";
    EXPECT_TRUE(write_file_atomically(path, text));
    return audit_certificates(path, run.batches(), cut_off);
  };
  EXPECT_EQ(audit(), Said{});
  lines.pop_back();
  EXPECT_EQ(audit().size(), 1U);
  fs::remove(path);
  EXPECT_EQ(audit_certificates(path, run.batches(), run.report).size(), 1U);
}

}  // namespace
}  // namespace temper::orchestrator
