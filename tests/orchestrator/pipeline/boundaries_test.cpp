// Absurd numbers at every key of a configuration: each is either within bounds, or refused with a
// message that names the key; reading never crashes and never takes long. The keys come from
// describe(), so that new ones are tested as well.
#include "core/clock.hpp"
#include "core/files.hpp"
#include "orchestrator/pipeline/load.hpp"
#include "orchestrator/pipeline/resolve.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>

namespace temper::orchestrator {
namespace {

using namespace std::chrono_literals;

/// A key with one value, its type, and its bounds as text.
struct Key {
  enum class Kind { Number, WithUnit, Other } kind = Kind::Other;
  std::string name;
  std::string unit{};
  std::vector<std::string> bounds{};
};

/// As describe() lists them.
struct KeysOf {
  std::string prefix;
  std::vector<Key>& keys;
  template <class T>
  void field(int,
             std::string_view name,
             T& value,
             const std::type_identity_t<FieldMeta<T>>& meta = {}) {
    const std::string key = prefix + std::string(name);
    if constexpr (Described<T>) {
      KeysOf inner{key + ".", keys};
      describe(inner, value);
    } else {
      Key found{.name = key};
      if constexpr (WithUnit<T>)
        found.kind = Key::Kind::WithUnit;
      else if constexpr (Bounded<T>)
        found.kind = Key::Kind::Number;
      if constexpr (std::same_as<T, Duration>)
        found.unit = "s";
      if constexpr (std::same_as<T, Bytes>)
        found.unit = "GB";
      if constexpr (std::same_as<T, BytesPerSecond>)
        found.unit = "GB/s";
      if constexpr (std::same_as<T, FlopsPerSecond>)
        found.unit = "TFLOP/s";
      if constexpr (Bounded<T>) {
        for (const auto& bound : {meta.min, meta.max}) {
          if (bound)
            found.bounds.push_back(scalar_text(*bound));
        }
        EXPECT_FALSE((meta.min && value < *meta.min) || (meta.max && value > *meta.max))
            << key << ": its default is out of bounds";
      }
      keys.push_back(std::move(found));
    }
  }
};

std::vector<Key> all_keys() {
  std::vector<Key> keys;
  PipelineConfig config;
  KeysOf collect{"", keys};
  describe(collect, config);
  return keys;
}

constexpr std::array kNumbers{"0",
                              "1",
                              "-1",
                              "2147483647",
                              "9223372036854775807",
                              "-9223372036854775808",
                              "1e300",
                              "5e-324",
                              "nan"};
constexpr std::array kWithUnit{"0", "-1", "9223372036", "1e300", "nan"};
constexpr std::array kOther{"-1", "[4294967295, 0, 0]", "null", "''"};

/// Values to test at a key: for numbers, the limits of their types and their bounds.
std::vector<std::string> values_for(const Key& key) {
  std::vector<std::string> values;
  if (key.kind == Key::Kind::Number)
    values.assign(kNumbers.begin(), kNumbers.end());
  else if (key.kind == Key::Kind::Other)
    values.assign(kOther.begin(), kOther.end());
  else
    for (const char* number : kWithUnit)
      values.push_back(number + key.unit);
  values.insert(values.end(), key.bounds.begin(), key.bounds.end());
  return values;
}

class Boundaries : public ::testing::TestWithParam<const char*> {};

TEST_P(Boundaries, AtEveryKeyAreReadOrRefusedInWords) {
  const std::filesystem::path file =
      std::filesystem::path(TEMPER_SOURCE_DIR) / "configs" / GetParam();
  const std::string text = read_file(file).value();
  const RealClock clock;
  std::size_t tried = 0, refused = 0;
  std::pair<Duration, std::string> slowest{};
  for (const Key& key : all_keys()) {
    for (const std::string& value : values_for(key)) {
      const std::vector<std::string> sets{key.name + "=" + value};
      SCOPED_TRACE(sets.front());
      const Time before = clock.now();
      const LoadedConfig loaded(file.string(), text, sets);
      slowest = std::max(slowest, {clock.now() - before, sets.front()});
      ++tried;
      refused += loaded.issues().empty() ? 0 : 1;
      for (const ConfigIssue& issue : loaded.issues()) {
        EXPECT_FALSE(issue.key.empty());
        EXPECT_FALSE(issue.message.empty());
      }
      if (loaded.issues().empty()) {
        EXPECT_TRUE(resolve(loaded.config()).has_value());
      }
    }
  }
  EXPECT_GT(tried, 1000U);
  EXPECT_GT(refused, tried / 4);
  EXPECT_LT(slowest.first, 10s) << slowest.second;
}

INSTANTIATE_TEST_SUITE_P(OfShippedConfigurations,
                         Boundaries,
                         ::testing::Values("quickstart.yaml", "cm384_pangu.yaml"));

TEST(Boundaries, AValueOutOfBoundsLeavesTheDefaultForTheOtherRules) {
  const LoadedConfig loaded("x.yaml", "model: {heads: 0}\nplacement: {cards: 2147483647}\n", {});
  EXPECT_EQ(loaded.config().model.heads, actors::ModelConfig().heads);
  EXPECT_EQ(loaded.config().placement.cards, PlacementConfig().cards);
  EXPECT_EQ(loaded.issues().size(), 2U) << render(loaded.issues());
}

}  // namespace
}  // namespace temper::orchestrator
