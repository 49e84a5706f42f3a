#include "cli/serve/site.hpp"

#include "cli/serve/prometheus.hpp"
#include "core/files.hpp"
#include "core/json.hpp"
#include "core/json_document.hpp"
#include "orchestrator/metrics/metric_table.hpp"
#include "orchestrator/watch/predictions.hpp"
#include "tests/support/gunzip.hpp"
#include "tests/support/temporary_folder.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <regex>

namespace temper::cli {
namespace {

namespace fs = std::filesystem;
using actors::CardState;
using actors::RoleKind;

/// A folder with one run, as its files are while it goes on.
class SiteTest : public ::testing::Test {
 protected:
  SiteTest() {
    fs::create_directory(run());
    write("config.yaml", "name: first\nsecret: no\n");
    write("events.log", "");
    Live live;
    live.pid = ::getpid();
    std::array<char, 256> host{};
    ::gethostname(host.data(), host.size() - 1);
    live.host = host.data();
    live.steps = 100;
    live.elapsed_s = 12;
    live.summary.name = "first";
    live.summary.steps = 2;
    live.summary.wall_s = 12;
    live.summary.cards = 2;
    live.summary.waits = {
        {RoleKind::Trainer, CardState::WaitData, "group N", 6, 0.25, 1, 3, "group 7"}};
    live.actors = {{"rollout-0", RoleKind::Rollout, CardState::Decode, "", 3, 4, 0}};
    live.cards = {{{0, 2}, {0}, {{CardState::Decode, 1.0}}, {{CardState::Decode, 0.5}}}};
    live.alarms = {{orchestrator::AlarmKind::SlowEngine, Time(), 2, "slow"}};
    live.alarms_raised = {{orchestrator::AlarmKind::SlowEngine, 300}};  // the list is cut, this not
    write("live.json", to_json(live));
    write("metrics.jsonl",
          R"({"step":1,"time":1,"reward":0.25})"
          "\n"
          R"({"step":2,"time":3,"reward":0.5})"
          "\n");
    write("samples.jsonl",
          R"({"step":2,"prompt":"1+1=","response":"2","reward":1})"
          "\n");
  }
  fs::path run() const { return folder_ / "first"; }
  void write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(write_file_atomically(run() / name, text));
  }
  /// As if the run had been killed.
  void lose_process() {
    auto live = parse_json_or_throw(*read_file(run() / "live.json"));
    const pid_t child = ::fork();
    if (child == 0)
      ::_exit(0);
    ::waitpid(child, nullptr, 0);
    live["pid"] = child;
    write("live.json", live.dump());
  }
  HttpAnswer get(std::string target, std::map<std::string, std::string, std::less<>> headers = {}) {
    headers.try_emplace("host", "127.0.0.1:7878");
    return site_.answer({"GET", std::move(target), std::move(headers)});
  }

  test::TemporaryFolder folder_;
  Site site_{{{folder_.path()}, ""}};
};

TEST_F(SiteTest, ListsTheRunsOfAFolder) {
  const auto list = parse_json_or_throw(get("/api/runs").body);
  ASSERT_EQ(list.size(), 1U);
  EXPECT_EQ(list[0].at("id"), "first");
  EXPECT_EQ(list[0].at("state"), "running");
  EXPECT_EQ(list[0].at("steps"), 2);
}

TEST_F(SiteTest, AFrameHasTheStateOfTheRun) {
  get("/api/runs");
  const auto frame = parse_json_or_throw(get("/api/runs/first/live").body);
  EXPECT_EQ(frame.at("state"), "running");
  EXPECT_EQ(frame.at("live").at("actors")[0].at("load"), 3);
}

TEST_F(SiteTest, ARunWhoseProcessIsGoneIsLost) {
  lose_process();
  get("/api/runs");
  EXPECT_EQ(parse_json_or_throw(get("/api/runs/first/live").body).at("state"), "lost");
}

TEST_F(SiteTest, AChangeThatAnAnswerReadFirstStillReachesThoseWhoWatch) {
  const std::vector<std::string> watched{"first"};
  site_.update(watched);
  EXPECT_TRUE(site_.update(watched).empty());
  lose_process();
  get("/api/runs/first/metrics");
  EXPECT_EQ(site_.update(watched), watched);
  EXPECT_TRUE(site_.update(watched).empty());
}

TEST_F(SiteTest, MetricsAreColumns) {
  get("/api/runs");
  const auto m = parse_json_or_throw(get("/api/runs/first/metrics").body);
  EXPECT_EQ(m.at("step").dump(), "[1,2]");
  EXPECT_EQ(m.at("series").at("reward").at("mean").dump(), "[0.25,0.5]");
  EXPECT_EQ(parse_json_or_throw(get("/api/runs/first/metrics?from=1").body).at("step").dump(),
            "[2]");
}

TEST_F(SiteTest, ServesTheTableOfMetrics) {
  const auto table = parse_json_or_throw(get("/api/metrics").body);
  EXPECT_EQ(table.size(), orchestrator::metric_table().size());
  const auto row =
      std::ranges::find(table, "tokens_per_s/raw", [](const auto& r) { return r.at("name"); });
  ASSERT_NE(row, table.end());
  EXPECT_EQ(row->at("group"), "Tokens per second");
  EXPECT_EQ(row->at("label"), "raw");
  EXPECT_EQ(row->at("unit"), "tokens/s");
}

TEST_F(SiteTest, SamplesAreFound) {
  get("/api/runs");
  EXPECT_EQ(parse_json_or_throw(get("/api/runs/first/samples?grep=1%2B1").body).at("matches"), 1);
  EXPECT_EQ(parse_json_or_throw(get("/api/runs/first/samples?step=3").body).at("matches"), 0);
}

TEST_F(SiteTest, ARunThatEndedIsListedAsWhatItsEndWas) {
  const auto listed = [&](bool over, bool ok, bool stopped) {
    auto live = parse_json_or_throw(*read_file(run() / "live.json"));
    live["over"] = over;
    live["summary"]["ok"] = ok;
    live["summary"]["stopped"] = stopped;
    write("live.json", live.dump());
    Site site({{folder_.path()}, ""});
    const auto ask = [&](const char* target) {
      return parse_json_or_throw(site.answer({"GET", target, {{"host", "localhost"}}}).body);
    };
    const std::string state = ask("/api/runs")[0].at("state");
    EXPECT_EQ(ask("/api/runs/first/live").at("state"), state);
    return state;
  };
  EXPECT_EQ(listed(false, false, false), "running");
  EXPECT_EQ(listed(true, true, false), "finished");
  EXPECT_EQ(listed(true, false, true), "stopped");
  EXPECT_EQ(listed(true, false, false), "failed");
  fs::remove(run() / "live.json");
  Site site({{folder_.path()}, ""});
  EXPECT_EQ(
      parse_json_or_throw(site.answer({"GET", "/api/runs", {{"host", "localhost"}}}).body)[0].at(
          "state"),
      "unknown");
}

TEST_F(SiteTest, SamplesComeInGroupsWithAllTheirResponses) {
  std::string lines;
  for (const char* reward : {"1", "null", "0"}) {
    lines += fmt::format(R"({{"step":2,"group":7,"place":{},"prompt":"1+1=","reward":{}}})"
                         "\n",
                         lines.size(),
                         reward);
  }
  write("samples.jsonl", lines);
  get("/api/runs");
  const auto found = parse_json_or_throw(get("/api/runs/first/samples?order=worst").body);
  EXPECT_EQ(found.at("matches"), 1);
  ASSERT_EQ(found.at("groups").size(), 1U);
  EXPECT_EQ(found.at("groups")[0].size(), 3U);
  EXPECT_TRUE(found.at("groups")[0][1].at("reward").is_null());
}

/// The folder of a run may be anyone's, and a run that is killed leaves half a line.
TEST_F(SiteTest, ATimelineLineThatIsNotJsonSpoilsNoAnswer) {
  fs::create_directory(run() / "timeline");
  const std::string good = R"({"b":0,"e":9,"s":[]})";
  for (const std::string bad : {R"({"b":0,"e":9)",
                                R"({"b":0,"e":9}})",
                                R"({"b":0,"e":9},)",
                                R"("b":0,"e":9)",
                                R"(x"b":0,"e":9)",
                                R"({"b":0,"e":9,"s":nan})",
                                R"({"b":0,"e":9,"s":"\x"})",
                                "{\"b\":0,\"e\":9,\"s\":\"\xff\"}",
                                "{\"b\":0,\"e\":9,\"s\":\"\x01\"}",
                                R"({"b":0,"e":9,"s":[1,]})",
                                R"([]"b":0,"e":9)",
                                R"({"b":0,"e":9}]}, {"level":1)"}) {
    write("timeline/0.jsonl", good + "\n" + bad + "\n" + good + "\n");
    const auto answer = parse_json_or_throw(get("/api/runs/first/timeline?from=0&to=9").body);
    EXPECT_EQ(answer.at("blocks").size(), 2U) << bad;
  }
}

TEST_F(SiteTest, LossesSayWhatAndAtMostHowMuch) {
  get("/api/runs");
  const auto answer = parse_json_or_throw(get("/api/runs/first/losses").body);
  const auto& losses = answer.at("losses");
  ASSERT_EQ(losses.size(), 1U);
  EXPECT_EQ(losses[0].at("what"), "trainer: wait-data, group N");
  EXPECT_NEAR(losses[0].at("most_gain").get<double>(), 1 / 0.75 - 1, 1e-9);
  EXPECT_NE(losses[0].at("command").get<std::string>().find("temper whatif"), std::string::npos);
  EXPECT_EQ(answer.at("busiest").at("roles")[0], "rollout");
}

TEST_F(SiteTest, ALossHasTheGainThatItsCommandPredictedAndNoneBefore) {
  get("/api/runs");
  const auto first = [&] {
    return parse_json_or_throw(get("/api/runs/first/losses").body).at("losses").at(0);
  };
  auto loss = first();
  const std::string command = loss.at("command");
  EXPECT_NE(command.find("--set staleness.bound=1 --keep"), std::string::npos) << command;
  EXPECT_TRUE(loss.at("predicted").is_null());
  ASSERT_TRUE(orchestrator::keep_prediction(run(), {"staleness.bound=1", 0.5, 0.1}));
  ASSERT_TRUE(orchestrator::keep_prediction(run(), {"staleness.bound=1", 0.25, 0.02}));
  ASSERT_TRUE(orchestrator::keep_prediction(run(), {"staleness.bound=9", 3, 0}));
  loss = first();
  EXPECT_EQ(loss.at("predicted"), 0.25);
  EXPECT_EQ(loss.at("predicted_error"), 0.02);
}

TEST_F(SiteTest, LargeAnswersArePackedForThoseWhoTakeGzip) {
  const HttpAnswer plain = get("/page.js");
  const HttpAnswer packed = get("/page.js", {{"accept-encoding", "br;q=1, gzip;q=0.8"}});
  EXPECT_EQ(plain.headers.count("Content-Encoding"), 0U);
  EXPECT_EQ(packed.headers.at("Content-Encoding"), "gzip");
  EXPECT_EQ(packed.headers.at("Vary"), "Accept-Encoding");
  EXPECT_LT(packed.body.size(), plain.body.size() / 2);
  ASSERT_TRUE(write_file_atomically(folder_ / "page.gz", packed.body));
  EXPECT_EQ(test::gunzip(folder_ / "page.gz"), plain.body);
}

TEST(AcceptsGzip, OnlyWhereItIsNamedAndNotRefused) {
  for (const char* yes : {"gzip", "deflate, gzip", "gzip;q=0.1", "gzip, br"})
    EXPECT_TRUE(accepts_gzip(yes)) << yes;
  for (const char* no : {"", "identity", "gzip;q=0", "gzip;q=0.0, br", "xgzip"})
    EXPECT_FALSE(accepts_gzip(no)) << no;
}

TEST_F(SiteTest, PrometheusGetsTheNewestLineAndTheActors) {
  const std::string text = get("/metrics").body;
  EXPECT_NE(text.find("# TYPE temper_reward gauge\ntemper_reward{run=\"first\"} 0.5\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("temper_actor_load{run=\"first\",actor=\"rollout-0\"} 3\n"),
            std::string::npos);
  EXPECT_NE(text.find("temper_alarms_total{run=\"first\",kind=\"slow_engine\"} 300\n"),
            std::string::npos);
  EXPECT_NE(text.find("temper_up{run=\"first\"} 1\n"), std::string::npos);
}

TEST(Page, TheMetricsThatItNamesAreInTheTable) {
  const std::string text = read_file(fs::path(TEMPER_SOURCE_DIR) / "web/src/views.ts").value();
  std::smatch compared;
  ASSERT_TRUE(std::regex_search(text, compared, std::regex(R"(const COMPARED = (\[[^\]]*\]);)")));
  auto names = parse_json(compared[1].str()).get<std::vector<std::string>>();
  const std::regex series(R"re(series\["([^"]+)"\])re");
  for (std::sregex_iterator it(text.begin(), text.end(), series), end; it != end; ++it)
    names.push_back((*it)[1].str());
  EXPECT_GT(names.size(), 7U);
  for (const std::string& name : names)
    EXPECT_EQ(std::ranges::count(orchestrator::metric_table(), name, &orchestrator::Metric::name),
              1)
        << name;
}

TEST(Grafana, ThePanelsShowMetricsThatExist) {
  const std::string text = read_file(fs::path(TEMPER_SOURCE_DIR) / "docs/grafana.json").value();
  const auto metrics = prometheus_metrics();
  const std::regex name("temper_[a-z0-9_]+");
  int found = 0;
  for (std::sregex_iterator it(text.begin(), text.end(), name), end; it != end; ++it, ++found)
    EXPECT_TRUE(metrics.contains(it->str())) << it->str();
  EXPECT_GT(found, 20);
}

TEST_F(SiteTest, NothingBesideTheRoutesIsAnswered) {
  get("/api/runs");
  for (const char* target : {"/../../etc/passwd",
                             "/api/runs/..%2f..%2fetc/config",
                             "/api/runs/first/../../x",
                             "/api/runs/first/config%00",
                             "/api/runs/first/events.log",
                             "/live.json"})
    EXPECT_EQ(get(target).status, 404) << target;
}

TEST_F(SiteTest, WhatIsNoGetIsRefused) {
  EXPECT_EQ(site_.answer({"POST", "/api/runs", {{"host", "localhost"}}}).status, 405);
}

TEST_F(SiteTest, WithATokenNothingIsToldWithoutIt) {
  Site site({{folder_.path()}, "0123456789abcdef"});
  const auto ask = [&](std::string target,
                       std::map<std::string, std::string, std::less<>> headers) {
    return site.answer({"GET", std::move(target), std::move(headers)});
  };
  for (const char* target :
       {"/", "/api/runs", "/metrics", "/page.js", "/?token=0123456789abcdee", "/?token="}) {
    for (const char* host : {"10.0.0.7:7878", "127.0.0.1:7878", "localhost", "[::1]:7878", ""})
      EXPECT_EQ(ask(target, {{"host", host}}).status, 401) << target << host;
  }
  const HttpAnswer page = ask("/?token=0123456789abcdef", {{"host", "10.0.0.7"}});
  EXPECT_EQ(page.status, 200);
  EXPECT_NE(page.headers.at("Set-Cookie").find("HttpOnly; SameSite=Strict"), std::string::npos);
  EXPECT_EQ(ask("/api/runs", {{"cookie", "a=b; temper_token=0123456789abcdef"}}).status, 200);
  EXPECT_EQ(ask("/metrics", {{"authorization", "Bearer 0123456789abcdef"}}).status, 200);
  EXPECT_EQ(ask("/metrics", {{"authorization", "Bearer 0123456789abcde"}}).status, 401);
}

TEST_F(SiteTest, ACookieBelongsToThePortThatTheBrowserSees) {
  const std::string token = "0123456789abcdef";
  Site site({{folder_.path()}, token});
  const auto cookie = [&](const char* host) {
    const std::string set =
        site.answer({"GET", "/?token=" + token, {{"host", host}}}).headers.at("Set-Cookie");
    return set.substr(0, set.find(';'));
  };
  EXPECT_EQ(cookie("localhost"), "temper_token=" + token);
  EXPECT_EQ(cookie("127.0.0.1:7878"), "temper_token_7878=" + token);
  EXPECT_EQ(cookie("[::1]:7879"), "temper_token_7879=" + token);
  EXPECT_EQ(cookie("[::1]"), "temper_token=" + token);
  EXPECT_EQ(cookie("h:1;x"), "temper_token=" + token);
  const auto ask = [&](const char* host, const std::string& cookies) {
    return site.answer({"GET", "/api/runs", {{"host", host}, {"cookie", cookies}}}).status;
  };
  const std::string both = "temper_token_1=theirs; temper_token_2=" + token;
  EXPECT_EQ(ask("127.0.0.1:1", both), 401);
  EXPECT_EQ(ask("127.0.0.1:2", both), 200);
}

/// Links that lead to themselves fail as a folder does that one may not enter, also for root.
TEST_F(SiteTest, WhatCannotBeEnteredIsNoRunAndHidesNoOther) {
  fs::create_symlink("loop", folder_ / "loop");
  fs::create_directory(folder_ / "second");
  fs::create_symlink("config.yaml", folder_ / "second/config.yaml");
  EXPECT_EQ(find_runs({folder_ / "loop", folder_.path()}),
            (std::vector<UntrustedFolder>{{folder_.path(), "first"}}));
}

TEST_F(SiteTest, ARunThatIsRemovedIsForgotten) {
  get("/api/runs");
  fs::remove_all(run());
  EXPECT_EQ(get("/api/runs").body, "[]");
  EXPECT_EQ(get("/api/runs/first/live").status, 404);
}

TEST(Target, QueriesAreDecoded) {
  const Target t = parse_target("/a%20b?x=1&y=%2F+z&flag");
  EXPECT_EQ(t.path, "/a b");
  EXPECT_EQ(t["x"], "1");
  EXPECT_EQ(t["y"], "/ z");
  EXPECT_EQ(t["flag"], "");
  EXPECT_EQ(t["none"], "");
  EXPECT_EQ(parse_target("/100%").path, "/100%");
  EXPECT_EQ(parse_target("/a+b").path, "/a+b") << "only in a query it is a space";
  for (const std::string name : {"a+b", "a b?c#d&e", "100%25", "ä/ö"})
    EXPECT_EQ(parse_target("/" + encoded(name)).path, "/" + name);
}

}  // namespace
}  // namespace temper::cli
