// Golden bytes of the protocol. TEMPER_UPDATE_GOLDEN=1 rewrites docs/reference/protocol.md and
// tests/golden/protocol. Changing the bytes of a message without a new version breaks deployed
// workers.
#include "actors/protocol/catalog.hpp"
#include "core/files.hpp"
#include "core/msgpack.hpp"
#include "tests/actors/protocol/protocol_page.hpp"
#include "tests/actors/protocol/sample_values.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <set>

namespace temper::actors {
namespace {

namespace fs = std::filesystem;

const fs::path kSource = TEMPER_SOURCE_DIR;
const fs::path kGolden = kSource / "tests/golden/protocol";

void expect_golden(const fs::path& path, const std::string& text) {
  if (const char* update = std::getenv("TEMPER_UPDATE_GOLDEN"); update && *update == '1') {
    ASSERT_TRUE(write_file_atomically(path, text));
  }
  const Result<std::string> golden = read_file(path);
  ASSERT_TRUE(golden) << golden.error().context;
  EXPECT_EQ(text, *golden) << path << " is stale; TEMPER_UPDATE_GOLDEN=1 rewrites it";
}

std::string bytes_of(const std::string& hex) {
  std::string out;
  std::istringstream stream(hex);
  for (std::string byte; stream >> byte;)
    out += static_cast<char>(std::stoi(byte, nullptr, 16));
  return out;
}

TEST(Protocol, GeneratedPageIsUpToDate) {
  expect_golden(kSource / "docs/reference/protocol.md", test::protocol_page());
}

/// Enumerators are sent as numbers, but the page and other languages number the names in order.
TEST(Protocol, CardStateNamesAreInTheOrderOfTheirValues) {
  std::size_t place = 0;
  for (const auto& [state, name] : EnumNames<CardState>::value)
    EXPECT_EQ(static_cast<std::size_t>(state), place++) << name;
}

TEST(Protocol, EveryMessageHasTheGoldenBytes) {
  AllMessages::for_each([&]<class M>(std::type_identity<M>) {
    const std::string bytes = encode(test::sample_value<M>(1));
    expect_golden(kGolden / (std::string(M::kName) + ".hex"), test::hex(bytes, 32) + "\n");
  });
  expect_golden(kGolden / "envelope.hex",
                test::hex(encode(test::sample_value<Envelope>(1)), 32) + "\n");
}

TEST(Protocol, GoldenBytesDecodeCompletely) {
  AllMessages::for_each([&]<class M>(std::type_identity<M>) {
    const std::string bytes =
        bytes_of(read_file(kGolden / (std::string(M::kName) + ".hex")).value());
    const Result<M> message = decode<M>(bytes);
    ASSERT_TRUE(message) << M::kName << ": " << message.error().context;
    EXPECT_EQ(encode(*message), bytes) << M::kName;
  });
}

TEST(Protocol, GoldenFilesMatchTheCatalog) {
  std::set<std::string> expected{"envelope.hex"};
  AllMessages::for_each(
      [&]<class M>(std::type_identity<M>) { expected.insert(std::string(M::kName) + ".hex"); });
  std::set<std::string> found;
  for (const auto& entry : fs::directory_iterator(kGolden))
    found.insert(entry.path().filename().string());
  EXPECT_EQ(found, expected);
}

/// A message of a newer build, with a field of every kind that this build does not know.
struct NewerHello {
  Hello hello;
  std::vector<WeightsHandle> future{2};
  std::string remark = "new";
};
void describe(auto& v, NewerHello& m) {
  v.field(98, "future", m.future);
  describe(v, m.hello);
  v.field(99, "remark", m.remark);
}

/// A message of an older build.
struct OlderHello {
  std::string name = "rollout-0";
};
void describe(auto& v, OlderHello& m) {
  v.field(2, "name", m.name);
}

TEST(Protocol, UnknownFieldsAreSkipped) {
  NewerHello newer;
  newer.hello = test::sample_value<Hello>(1);
  const Result<Hello> hello = decode<Hello>(encode(newer));
  ASSERT_TRUE(hello) << hello.error().context;
  EXPECT_EQ(encode(*hello), encode(newer.hello));
}

TEST(Protocol, MissingFieldsKeepTheirDefault) {
  const Result<Hello> hello = decode<Hello>(encode(OlderHello{}));
  ASSERT_TRUE(hello) << hello.error().context;
  EXPECT_EQ(hello->name, "rollout-0");
  EXPECT_EQ(hello->protocol, kProtocolVersion);
  EXPECT_EQ(hello->pid, 0);
  EXPECT_EQ(hello->secret, "");
}

/// Bytes of a build whose heartbeats had no `loading` and whose failures had no `permanent`.
TEST(Protocol, DefaultsLoadingAndPermanentForOlderWorkers) {
  const auto beat = decode<Heartbeat>(
      bytes_of("83 01 01 02 ce 77 35 94 00 03 82 01 ce 3b 9a ca 00 02 ce 00 1e 84 80"));
  ASSERT_TRUE(beat) << beat.error().context;
  EXPECT_FALSE(beat->loading);
  EXPECT_EQ(beat->resident, Bytes(1));
  const auto failed = decode<Failed>(bytes_of("81 01 a6 74 65 78 74 20 31"));
  ASSERT_TRUE(failed) << failed.error().context;
  EXPECT_FALSE(failed->permanent);
  EXPECT_FALSE(failed->not_finite);
  EXPECT_EQ(failed->reason, "text 1");
}

/// Bytes of a build whose failures had no `not_finite`: the fact that its text tells is not read.
TEST(Protocol, DefaultsNotFiniteForOlderWorkers) {
  const auto failed = decode<Failed>(bytes_of("82 01 ab 6c 6f 73 73 20 69 73 20 6e 61 6e 02 c3"));
  ASSERT_TRUE(failed) << failed.error().context;
  EXPECT_EQ(failed->reason, "loss is nan");
  EXPECT_TRUE(failed->permanent);
  EXPECT_FALSE(failed->not_finite);
}

TEST(Protocol, RejectsEveryProperPrefixOfAMessage) {
  AllMessages::for_each([&]<class M>(std::type_identity<M>) {
    const std::string bytes = encode(test::sample_value<M>(1));
    for (std::size_t n = 0; n < bytes.size(); ++n)
      EXPECT_FALSE(decode<M>(std::string_view(bytes).substr(0, n))) << M::kName << ", " << n;
  });
}

}  // namespace
}  // namespace temper::actors
