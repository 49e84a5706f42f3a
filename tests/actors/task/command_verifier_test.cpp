#include "actors/task/internal/command_verifier.hpp"

#include "actors/task/internal/probation.hpp"
#include "core/clock.hpp"
#include "core/random.hpp"
#include "tests/support/temporary_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

namespace temper::actors {
namespace {

using std::chrono::milliseconds;

constexpr const char* kGood = R"(while read -r line; do echo '{"reward": 0.5}'; done)";

std::vector<JudgeRequest> responses(const std::vector<std::string>& texts) {
  std::vector<JudgeRequest> batch;
  for (const std::string& text : texts)
    batch.push_back({"2+2=", "4", text});
  return batch;
}

class CommandVerifier : public ::testing::Test {
 protected:
  /// A verifier that runs `script` with /bin/sh.
  std::unique_ptr<Verifier> verifier(const std::string& script,
                                     Duration deadline = std::chrono::seconds(5),
                                     std::int32_t pool = 1) {
    const auto file = folder_ / "verify.sh";
    std::ofstream(file) << script << "\n";
    VerifierConfig config;
    config.kind = VerifierKind::Command;
    config.command = {"/bin/sh", file.string()};
    config.deadline = deadline;
    config.pool = pool;
    auto made = make_verifier(config);
    EXPECT_TRUE(made);
    return *std::move(made);
  }

  /// The failure of a single sample.
  std::string failure_of(const std::string& script, Duration deadline = std::chrono::seconds(5)) {
    const std::vector<JudgeRequest> one{{"p", "a", "r"}};
    const auto verdicts = verifier(script, deadline)->judge(one);
    EXPECT_EQ(verdicts[0].reward, 0);
    return verdicts[0].failure;
  }

  const test::TemporaryFolder folder_;
};

TEST_F(CommandVerifier, ReturnsRewardsInOrder) {
  const auto v = verifier(R"(while read -r line; do
      case $line in
        *'"response":"good"}') echo '{"reward": 1, "note": "kept out"}' ;;
        *) echo '{"reward":-0.25}' ;;
      esac
    done)",
                          std::chrono::seconds(5),
                          3);
  std::vector<std::string> texts;
  for (int i = 0; i < 50; ++i)
    texts.push_back(i % 3 == 0 ? "good" : "bad");
  for (int round = 0; round < 2; ++round) {
    const auto verdicts = v->judge(responses(texts));
    ASSERT_EQ(verdicts.size(), 50U);
    for (std::size_t i = 0; i < 50; ++i) {
      EXPECT_EQ(verdicts[i].failure, "");
      EXPECT_EQ(verdicts[i].reward, i % 3 == 0 ? 1 : -0.25) << i;
    }
  }
  EXPECT_TRUE(v->judge({}).empty());
}

TEST_F(CommandVerifier, SendsOneLineOfUtf8ForAnyResponse) {
  const auto v = verifier(R"(while read -r line; do
      case $line in
        '{"prompt":"2+2=","answer":"4","response":"'*'"}') echo '{"reward": 1}' ;;
        *) exit 1 ;;
      esac
    done)");
  const auto verdicts =
      v->judge(responses({"two\nlines\r\n", "\xff\xfe", std::string("\0 \"\\", 4), ""}));
  for (const Verdict& verdict : verdicts)
    EXPECT_EQ(verdict.failure, "");
}

TEST_F(CommandVerifier, ACrashFailsOnlyItsSample) {
  const auto v = verifier(R"(while read -r line; do
      case $line in
        *crash*) echo 'out of luck' >&2; exit 3 ;;
        *kill*) kill -9 $$ ;;
        *) echo '{"reward": 1}' ;;
      esac
    done)");
  const auto verdicts = v->judge(responses({"a", "crash", "b", "kill", "c"}));
  EXPECT_EQ(verdicts[1].failure, "it ended without a reply: exit code 3; stderr: out of luck");
  EXPECT_EQ(verdicts[3].failure, "it ended without a reply: killed by signal 9 (Killed)");
  for (const std::size_t i : {0U, 2U, 4U}) {
    EXPECT_EQ(verdicts[i].failure, "");
    EXPECT_EQ(verdicts[i].reward, 1);
  }
}

TEST_F(CommandVerifier, AHangFailsItsSampleAfterTheDeadline) {
  const auto v = verifier(R"(while read -r line; do
      case $line in
        *hang*) sleep 1000 ;;
        *) echo '{"reward": 1}' ;;
      esac
    done)",
                          milliseconds(100));
  const RealClock clock;
  const auto verdicts = v->judge(responses({"hang", "a", "hang", "b"}));
  EXPECT_GE(clock.now(), Time(milliseconds(200)));
  EXPECT_LT(clock.now(), Time(milliseconds(2000)));
  EXPECT_EQ(verdicts[0].failure, "no reply within 100ms");
  EXPECT_EQ(verdicts[1].reward, 1);
  EXPECT_EQ(verdicts[2].failure, "no reply within 100ms");
  EXPECT_EQ(verdicts[3].reward, 1);
}

TEST_F(CommandVerifier, QuotesAnInvalidReply) {
  EXPECT_EQ(failure_of("read l; echo hello; cat"), "the reply is not JSON: `hello`");
  EXPECT_EQ(failure_of("read l; echo '[1]'; cat"),
            "the reply has no `reward`: `[1]`; expected {\"reward\": NUMBER}");
  EXPECT_EQ(failure_of("read l; echo '{\"reward\": \"1\"}'; cat"),
            "`reward` is not a finite number: `{\"reward\": \"1\"}`");
  EXPECT_EQ(failure_of("read l; echo '{\"reward\": 1e999}'; cat"),
            "the reply is not JSON: `{\"reward\": 1e999}`");
  for (const char* const impossible : {"1e308", "-1e308", "3e38", "1e19", "-1e19"}) {
    EXPECT_NE(failure_of(fmt::format("read l; echo '{{\"reward\": {}}}'; cat", impossible))
                  .find("expected -1e+18 to 1e+18"),
              std::string::npos)
        << impossible;
  }
}

TEST_F(CommandVerifier, ReplacesAProcessThatWritesMoreThanOneLine) {
  const auto v = verifier("read l; printf '{\"reward\":1}\\n{\"reward\":7}\\n'; cat >/dev/null");
  for (const Verdict& verdict : v->judge(responses({"a", "b", "c"}))) {
    EXPECT_EQ(verdict.failure, "");
    EXPECT_EQ(verdict.reward, 1);
  }
}

TEST_F(CommandVerifier, FailsOnFloodsAndClosedPipes) {
  EXPECT_EQ(failure_of("while :; do printf '%01000d' 1; done"),
            "expected a reply of at most 65536 bytes, found more");
  EXPECT_EQ(failure_of("cat /dev/zero >&2").rfind("expected at most 1048576 bytes on stderr", 0),
            0U);
  EXPECT_EQ(failure_of("exec 1>&-; sleep 1000"), "it closed its stdout");
  EXPECT_EQ(failure_of("exec 0<&-; sleep 1000", milliseconds(50)), "no reply within 50ms");
}

TEST_F(CommandVerifier, DoesNotBlockIfTheRequestIsNotRead) {
  const auto v = verifier("sleep 1000", milliseconds(50));
  const auto verdicts = v->judge(responses({std::string(4 << 20, 'x')}));
  EXPECT_EQ(verdicts[0].failure, "no reply within 50ms");
}

TEST_F(CommandVerifier, RestartsACommandThatAnswersOnlyOnce) {
  const auto v = verifier("read -r line; echo '{\"reward\": 1}'; exec 1>&- ; sleep 0.001");
  int right = 0;
  for (int i = 0; i < 5; ++i) {
    for (const Verdict& verdict : v->judge(responses({"a"})))
      right += verdict.reward == 1;
  }
  EXPECT_GE(right, 3);  // A process that ends just as it gets the next sample fails that sample.
}

/// The number of lines that scripts have appended to a file.
std::ptrdiff_t lines_in(const std::filesystem::path& file) {
  std::ifstream in(file);
  return std::count(std::istreambuf_iterator<char>(in), {}, '\n');
}

struct BadVerifier {
  const char* name;
  const char* script;       ///< The rest of the script, after it has written a line to `starts` in
                            ///< the folder `$d`.
  const char* failure;      ///< Expected part of the failure.
  int deadline_ms = 20000;  ///< Short if only the deadline detects the failure.
};

void PrintTo(const BadVerifier& verifier, std::ostream* out) {
  *out << verifier.script;
}

class NeverRewarding : public CommandVerifier, public ::testing::WithParamInterface<BadVerifier> {};
class RewardingOnce : public NeverRewarding {};

TEST_P(NeverRewarding, IsGivenUpAfterThreeFailures) {
  for (const int pool : {1, 2, 5}) {
    const auto v = verifier(std::string("d=${0%/*}; echo >>$d/starts; ") + GetParam().script,
                            milliseconds(GetParam().deadline_ms),
                            pool);
    const auto verdicts = v->judge(responses(std::vector<std::string>(200, "a")));
    EXPECT_TRUE(v->gave_up());
    ASSERT_EQ(verdicts.size(), 200U);
    for (const Verdict& verdict : verdicts) {
      ASSERT_NE(verdict.failure.find(GetParam().failure), std::string::npos) << verdict.failure;
    }
    // A pool of one has used three processes; one more may have been started in their place.
    EXPECT_LE(lines_in(folder_ / "starts"), 4 * pool)
        << "must be far below the number of responses";
    std::filesystem::remove(folder_ / "starts");
  }
}

TEST_P(RewardingOnce, IsNotGivenUp) {
  const auto v = verifier(std::string("d=${0%/*}; if mkdir $d/once 2>/dev/null; then read l; "
                                      "echo '{\"reward\": 1}'; fi; ") +
                              GetParam().script,
                          milliseconds(GetParam().deadline_ms));
  const auto first = v->judge(responses({"a"}));
  ASSERT_EQ(first[0].failure, "");
  const auto verdicts = v->judge(responses({"b", "c", "d", "e"}));
  EXPECT_FALSE(v->gave_up());
  for (const Verdict& verdict : verdicts)
    EXPECT_NE(verdict.failure, "");
}

std::string verifier_name(const ::testing::TestParamInfo<BadVerifier>& info) {
  return info.param.name;
}

const auto kReplying = ::testing::Values(
    BadVerifier{"NotJson", "read l; echo right; cat", "the reply is not JSON: `right`"},
    BadVerifier{"EmptyLine", "read l; echo; cat", "the reply is not JSON"},
    BadVerifier{"NoReward", "read l; echo '{\"score\": 1}'; cat", "no `reward`: `{\"score\": 1}`"},
    BadVerifier{"BareNumber", "read l; echo 1; cat", "no `reward`: `1`"},
    BadVerifier{"List", "read l; echo '[1]'; cat", "no `reward`"},
    BadVerifier{"Null", "read l; echo '{\"reward\": null}'; cat", "not a finite number"},
    BadVerifier{"Text", "read l; echo '{\"reward\": \"1\"}'; cat", "not a finite number"},
    BadVerifier{"Boolean", "read l; echo '{\"reward\": true}'; cat", "not a finite number"},
    BadVerifier{"ListOfOne", "read l; echo '{\"reward\": [1]}'; cat", "not a finite number"},
    BadVerifier{"NotANumber", "read l; echo '{\"reward\": NaN}'; cat", "not JSON"},
    BadVerifier{"Infinite", "read l; echo '{\"reward\": Infinity}'; cat", "not JSON"},
    BadVerifier{"TooLarge", "read l; echo '{\"reward\": 1e999}'; cat", "not JSON"},
    BadVerifier{"PrintsBefore", "read l; echo loading; echo '{\"reward\": 1}'; cat", "`loading`"},
    BadVerifier{
        "Endless", "while :; do printf '%01000d' 1; done", "at most 65536 bytes, found more"},
    BadVerifier{"EndsAtOnce", "exit 7", "exit code 7"},
    BadVerifier{"EndsWhenAsked", "read l; exit 8", "exit code 8"},
    BadVerifier{"OnlyOnStderr", "read l; echo broken >&2; exit 1", "stderr: broken"},
    BadVerifier{"IsKilled", "read l; kill -9 $$", "signal 9"},
    BadVerifier{"ClosesItsOutput", "exec 1>&-; cat >/dev/null", "closed its stdout"},
    BadVerifier{"FloodsStderr", "cat /dev/zero >&2", "bytes on stderr"});

INSTANTIATE_TEST_SUITE_P(Programs, NeverRewarding, kReplying, verifier_name);
INSTANTIATE_TEST_SUITE_P(Programs, RewardingOnce, kReplying, verifier_name);
INSTANTIATE_TEST_SUITE_P(Silent,
                         NeverRewarding,
                         ::testing::Values(BadVerifier{
                             "SaysNothing", "cat >/dev/null", "no reply within", 60}),
                         verifier_name);

TEST_F(CommandVerifier, CountsFailuresAcrossBatchesAndRecovers) {
  const auto v = verifier("d=${0%/*}; read l; [ -e $d/mended ] && echo '{\"reward\": 1}'; exit 1");
  v->judge(responses({"a"}));
  EXPECT_FALSE(v->gave_up());
  v->judge(responses({"b"}));
  EXPECT_FALSE(v->gave_up());
  v->judge(responses({"c"}));
  EXPECT_TRUE(v->gave_up()) << "this is the third failure";
  std::ofstream(folder_ / "mended") << "";
  const auto verdicts = v->judge(responses({"d"}));
  EXPECT_FALSE(v->gave_up());
  EXPECT_EQ(verdicts[0].reward, 1) << verdicts[0].failure;
}

TEST_F(CommandVerifier, DelaysRestartsOfACommandThatStoppedReplying) {
  const auto v = verifier(
      "d=${0%/*}; echo x >>$d/starts; mkdir $d/once 2>/dev/null || exit 1; read l; "
      "echo '{\"reward\": 1}'",
      std::chrono::seconds(2));
  ASSERT_EQ(v->judge(responses({"a"}))[0].failure, "");
  const RealClock clock;
  for (const Verdict& verdict : v->judge(responses(std::vector<std::string>(6, "a"))))
    EXPECT_NE(verdict.failure, "");
  // The first process runs already. The next ones start after 10, 20, 20, ... ms (at most half a
  // deadline), and each costs one sample, or none if it ends before it gets one.
  EXPECT_GE(clock.now(), Time(milliseconds(90)));
  EXPECT_LE(lines_in(folder_ / "starts"), 17);
}

TEST_F(CommandVerifier, ReportsACommandThatCannotBeStarted) {
  VerifierConfig config;
  config.kind = VerifierKind::Command;
  EXPECT_FALSE(make_verifier(config));
  config.command = {"no-such-program-anywhere"};
  const auto missing = make_verifier(config);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().context,
            "verifier.command: no executable `no-such-program-anywhere` in PATH");
  config.command = {folder_.path().string()};
  EXPECT_FALSE(make_verifier(config));
}

TEST_F(CommandVerifier, ADeletedProgramFailsOnlySamples) {
  const auto program = folder_ / "program";
  std::ofstream(program) << "#!/bin/sh\nexit 0\n";
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  VerifierConfig config;
  config.kind = VerifierKind::Command;
  config.command = {program.string()};
  config.pool = 1;
  auto v = make_verifier(config);
  ASSERT_TRUE(v);
  std::filesystem::remove(program);
  const auto verdicts = (*v)->judge(responses({"a", "b"}));
  EXPECT_NE(verdicts[1].failure.find("cannot execute"), std::string::npos) << verdicts[1].failure;
}

TEST_F(CommandVerifier, InheritsOnlyTheThreePipes) {
  const auto other = verifier(kGood);  // Its pipes must not leak either.
  const int leak = ::open("/dev/null", 0);
  const auto v =
      verifier(R"(read -r line; set -- /proc/self/fd/*; echo "{\"reward\": $#}"; cat >/dev/null)");
  const auto verdicts = v->judge(responses({"a"}));
  ::close(leak);
  // 0, 1, 2, the shell's own script, and the folder that the shell lists.
  EXPECT_LE(verdicts[0].reward, 5) << verdicts[0].failure;
}

TEST(Probation, EndsAtTheThirdFailureOrTheFirstReward) {
  const Verdict good{.reward = 0, .failure = {}}, bad{.failure = "no"};
  Probation strict;
  EXPECT_FALSE(strict.fails(bad));
  EXPECT_FALSE(strict.fails(bad));
  EXPECT_TRUE(strict.fails(bad));
  EXPECT_FALSE(strict.fails(bad)) << "the count must restart";
  Probation lenient;
  EXPECT_FALSE(lenient.fails(bad));
  EXPECT_FALSE(lenient.fails(bad));
  EXPECT_FALSE(lenient.fails(good));
  for (int i = 0; i < 100; ++i)
    EXPECT_FALSE(lenient.fails(bad));
}

TEST(ParseReply, RejectsEverythingButAReward) {
  Random random(1, "garbage");
  const std::string alphabet = "{}[]\":,.-+eE0123456789rewad \\u\n\xff";
  for (int i = 0; i < 20000; ++i) {
    std::string line = random.chance(0.5) ? "{\"reward\":" : "";
    for (std::uint64_t n = random.below(20); n > 0; --n)
      line += alphabet[random.below(alphabet.size())];
    const auto reward = parse_reply(line);
    ASSERT_TRUE(!reward || std::isfinite(*reward)) << line;
  }
  EXPECT_FALSE(parse_reply(std::string(kLongestReply, '[')));
  EXPECT_EQ(*parse_reply("{\"reward\": 1}"), 1);
  EXPECT_EQ(*parse_reply(" {\"reward\":-2.5e-1}\r"), -0.25);
}

}  // namespace
}  // namespace temper::actors
