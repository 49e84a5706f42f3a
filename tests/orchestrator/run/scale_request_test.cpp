// Requests to scale a run are files that anyone with access to its folder may write: whatever is in
// the place of one is answered, and neither blocks nor ends the orchestrator.
// TEMPER_SCALE_REQUESTS=10000 draws as many.
#include "orchestrator/run/scale_request.hpp"

#include "core/files.hpp"
#include "core/random.hpp"
#include "core/yaml.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/temporary_folder.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;

class ScaleRequestTest : public ::testing::Test {
 protected:
  const fs::path& run() const { return folder_.path(); }
  fs::path request() const { return run() / "scale.request"; }

 private:
  test::TemporaryFolder folder_;
};

TEST_F(ScaleRequestTest, AnOrchestratorReadsWhatACommandWrote) {
  const ScaleRequest wanted{"20261125-1", 3, std::nullopt, 2};
  ASSERT_TRUE(write_request(run(), wanted));
  const auto read = read_request(run());
  ASSERT_TRUE(read && *read);
  EXPECT_EQ(**read, wanted);
}

TEST_F(ScaleRequestTest, AnAnswerIsForTheRequestThatItNames) {
  ASSERT_TRUE(write_request(run(), {"a", 3, {}, {}}));
  ASSERT_TRUE(answer_request(run(), {"a", "rollout.replicas: 2 -> 3\n", "", ScaleOutcome::Done}));
  EXPECT_FALSE(fs::exists(request()));
  EXPECT_FALSE(read_answer(run(), "b"));
  const auto answer = read_answer(run(), "a");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->outcome, ScaleOutcome::Done);
  EXPECT_EQ(answer->done, "rollout.replicas: 2 -> 3\n");
}

TEST_F(ScaleRequestTest, ARequestToAnEarlierOrchestratorIsAnsweredAsRestarted) {
  ASSERT_TRUE(decline_older_request(run())) << "there is none";
  EXPECT_FALSE(read_answer(run(), ""));
  ASSERT_TRUE(write_request(run(), {"a", 3, {}, {}}));
  ASSERT_TRUE(decline_older_request(run()));
  EXPECT_FALSE(fs::exists(request()));
  const auto answer = read_answer(run(), "a");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->outcome, ScaleOutcome::Restarted);
  EXPECT_EQ(answer->done, "");
}

struct Neighbor {
  const char* name;
  std::function<void(const fs::path&)> put;
  std::optional<ErrorCode> refused = ErrorCode::InvalidInput;
};

void put_text(const fs::path& path, std::string_view text) {
  ASSERT_TRUE(write_file_atomically(path, text));
}

std::function<void(const fs::path&)> text(std::string content) {
  return [content = std::move(content)](const fs::path& path) { put_text(path, content); };
}

const std::vector<Neighbor>& neighbors() {
  static const std::vector<Neighbor> all{
      {"LeastNumbers", text("id: x\nrollout: 1\nreference: 0\nreward: 1\n"), std::nullopt},
      {"MostNumbers", text("id: x\nrollout: 4096\nreference: 4096\nreward: 4096\n"), std::nullopt},
      {"NothingWanted", text("id: x\n"), std::nullopt},
      {"NoRollout", text("id: x\nrollout: 0\n")},
      {"NegativeReference", text("id: x\nreference: -1\n")},
      {"NoReward", text("id: x\nreward: 0\n")},
      {"OneTooMany", text("id: x\nrollout: 4097\n")},
      {"MoreThanAnIntegerHolds", text("id: x\nrollout: 4294967297\n")},
      {"AFraction", text("id: x\nrollout: 1.5\n")},
      {"ANumberInQuotes", text("id: x\nrollout: \"2\"\n")},
      {"AListOfNumbers", text("id: x\nrollout: [1, 2]\n")},
      {"AnUnknownRole", text("id: x\ntrainer: 2\n")},
      {"ARoleTwice", text("id: x\nrollout: 1\nrollout: 2\n")},
      {"NoId", text("rollout: 2\n")},
      {"AnEmptyId", text("id: \"\"\nrollout: 2\n")},
      {"ALongId", text("id: " + std::string(129, 'x') + "\nrollout: 2\n")},
      {"AnEmptyFile", text("")},
      {"NoYaml", text("{{{{")},
      {"TwoDocuments", text("id: x\n---\nid: y\n")},
      {"DeepNesting", text("id: " + std::string(2000, '['))},
      {"ControlCharacters", text(std::string("id: x\n\0\x01\x1b", 9))},
      {"BytesThatAreNoText",
       text("\x7f"
            "ELF\x02\xff\xfe\x80")},
      {"AFileThatIsTooLarge", text("id: x\nrollout: 2\n#" + std::string(4096, 'x'))},
      {"AFifo", [](const fs::path& p) { ASSERT_EQ(::mkfifo(p.c_str(), 0600), 0); }},
      {"AFolder", [](const fs::path& p) { fs::create_directory(p); }},
      {"AFolderWithAFile",
       [](const fs::path& p) {
         fs::create_directory(p);
         put_text(p / "mine", "kept");
       }},
      {"ALinkToARequest",
       [](const fs::path& p) {
         put_text(p.parent_path() / "elsewhere", "id: x\nrollout: 2\n");
         fs::create_symlink("elsewhere", p);
       }},
      {"ALinkToNothing", [](const fs::path& p) { fs::create_symlink("nowhere", p); }},
      {"ALinkToItself", [](const fs::path& p) { fs::create_symlink("scale.request", p); }},
      {"ALinkToADevice", [](const fs::path& p) { fs::create_symlink("/dev/zero", p); }},
      {"ASocket",
       [](const fs::path& p) {
         const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
         sockaddr_un address{};
         address.sun_family = AF_UNIX;
         p.string().copy(address.sun_path, sizeof address.sun_path - 1);
         ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
         ::close(fd);
       },
       ErrorCode::InvalidInput}};
  return all;
}

class ANeighborOfARequest : public ScaleRequestTest,
                            public ::testing::WithParamInterface<Neighbor> {};
INSTANTIATE_TEST_SUITE_P(Each,
                         ANeighborOfARequest,
                         ::testing::ValuesIn(neighbors()),
                         [](const auto& p) { return std::string(p.param.name); });

TEST_P(ANeighborOfARequest, IsReadWithoutBlockingThenAnsweredThenGone) {
  GetParam().put(request());
  const auto read = read_request(run());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->has_value(), !GetParam().refused) << (*read ? "" : read->error().context);
  if (!*read) {
    EXPECT_EQ(read->error().code, *GetParam().refused) << read->error().context;
    EXPECT_NE(read->error().context.find("scale.request"), std::string::npos)
        << "the place: " << read->error().context;
  }
  const std::string id = *read ? (*read)->id : "";
  ASSERT_TRUE(answer_request(run(), {id, "", "no", ScaleOutcome::Refused}));
  EXPECT_FALSE(read_request(run()));
  const auto answer = read_answer(run(), id);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->outcome, ScaleOutcome::Refused);
}

TEST_F(ScaleRequestTest, AFileThatMayNotBeReadIsRefused) {
  put_text(request(), "id: x\nrollout: 2\n");
  fs::permissions(request(), fs::perms::none);
  if (::geteuid() == 0)
    GTEST_SKIP() << "root may read anything";
  const auto read = read_request(run());
  ASSERT_TRUE(read && !*read);
  EXPECT_EQ(read->error().code, ErrorCode::Io);
}

TEST_F(ScaleRequestTest, AFolderInItsPlaceIsKeptAside) {
  fs::create_directory(request());
  put_text(request() / "mine", "kept");
  ASSERT_TRUE(withdraw_request(run()));
  EXPECT_FALSE(fs::exists(request()));
  EXPECT_EQ(read_file(run() / "scale.request.refused-1" / "mine").value(), "kept");
}

// --- Drawn requests

std::uint64_t drawn_requests() {
  const char* number = std::getenv("TEMPER_SCALE_REQUESTS");
  return number == nullptr ? 500 : std::strtoull(number, nullptr, 10);
}

std::string drawn_number(Random& random) {
  static constexpr std::array kNumbers{
      "0",    "1",      "-1",    "4096", "4097", "2147483647", "2147483648", "99999999999999999999",
      "0x10", "1e3",    "1.0",   ".inf", "true", "~",          "''",         "2 # two",
      "[3]",  "{a: 3}", "3 GiB", "*a"};
  if (random.chance(0.5))
    return std::to_string(random.below(8));
  return kNumbers[random.below(kNumbers.size())];
}

/// Lines as a request has them, most of them well formed; then some bytes are changed.
std::string drawn_text(Random& random) {
  static constexpr std::array kKeys{
      "id", "rollout", "reference", "reward", "trainer", "rollout.replicas", "\"id\"", ""};
  std::string text = random.chance(0.9) ? "id: drawn\n" : "";
  for (std::uint64_t line = random.below(5); line > 0; --line) {
    const std::size_t known = random.chance(0.8) ? 4 : kKeys.size();
    text += fmt::format("{}: {}\n", kKeys[random.below(known)], drawn_number(random));
  }
  for (std::uint64_t n = random.chance(0.5) ? random.below(4) : 0; n > 0; --n) {
    const std::size_t at = random.below(text.size() + 1);
    const char byte = static_cast<char>(random.below(256));
    if (at == text.size() || random.chance(0.3))
      text.insert(at, 1, byte);
    else if (random.chance(0.5))
      text.erase(at, 1 + random.below(4));
    else
      text[at] = byte;
  }
  return text;
}

TEST(ScaleRequests, DrawnAtRandomAreReadAsWrittenOrRefused) {
  const test::Seed seed;
  Random random(seed.value(), seed.stream());
  std::uint64_t read = 0;
  for (std::uint64_t i = 0; i < drawn_requests(); ++i) {
    const std::string drawn = drawn_text(random);
    const auto request = parse_request(drawn);
    if (!request) {
      ASSERT_EQ(request.error().code, ErrorCode::InvalidInput) << drawn;
      ASSERT_FALSE(request.error().context.empty()) << drawn;
      continue;
    }
    ++read;
    ASSERT_GE(request->rollout.value_or(1), 1) << drawn;
    ASSERT_GE(request->reference.value_or(0), 0) << drawn;
    ASSERT_GE(request->reward.value_or(1), 1) << drawn;
    for (const auto& number : {request->rollout, request->reference, request->reward})
      ASSERT_LE(number.value_or(0), 4096) << drawn;
    const auto again = parse_request(to_yaml(*request));
    ASSERT_TRUE(again) << again.error().context;
    ASSERT_EQ(*again, *request);
  }
  EXPECT_GT(read, drawn_requests() / 20) << "the generator reaches the accepting side";
  EXPECT_LT(read, drawn_requests()) << "and the refusing side";
}

}  // namespace
}  // namespace temper::orchestrator
