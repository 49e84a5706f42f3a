// The seed of a test that draws what it does. The environment may give another one, to look
// further or to see a failure again: TEMPER_TEST_SEED=7 test_system --gtest_filter=...
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>

namespace temper::test {

/// While it lives, every failure says which seed it was. A member of a fixture, or the first line
/// of a test.
class Seed {
 public:
  static constexpr const char* kVariable = "TEMPER_TEST_SEED";

  explicit Seed(std::uint64_t usual = 1)
      : value_(given().value_or(usual)),
        trace_(__FILE__, __LINE__, fmt::format("{}={}", kVariable, value_)) {}

  std::uint64_t value() const { return value_; }
  /// The name of the test that runs: tests draw independently of one another.
  std::string stream() const {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    return fmt::format("{}.{}", test->test_suite_name(), test->name());
  }

 private:
  static std::optional<std::uint64_t> given() {
    const char* text = std::getenv(kVariable);
    if (text == nullptr || *text == '\0')
      return std::nullopt;
    return std::strtoull(text, nullptr, 10);
  }

  const std::uint64_t value_;
  const testing::ScopedTrace trace_;
};

}  // namespace temper::test
