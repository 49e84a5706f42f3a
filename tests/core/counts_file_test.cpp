#include "core/counts_file.hpp"

#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace temper {
namespace {

std::filesystem::path holding(std::string_view text) {
  const std::filesystem::path file = test::temporary_file("counts.json");
  std::ofstream(file) << text;
  return file;
}

TEST(CountsFile, ReadsCountsInOrder) {
  EXPECT_EQ(*read_counts(holding("[3, 1, 2]"), "lengths"), (std::vector<std::int64_t>{3, 1, 2}));
}

TEST(CountsFile, NamesTheExpectedContent) {
  const auto said = [](std::string_view text) {
    const auto counts = read_counts(holding(text), "lengths");
    return counts ? std::string("accepted") : counts.error().context;
  };
  EXPECT_NE(said("[]").find("counts.json: expected a non-empty JSON array of lengths"),
            std::string::npos);
  EXPECT_NE(said("[8, 0]").find("entry 2: expected an integer >= 1, found `0`"), std::string::npos);
  EXPECT_NE(said("[1, 2").find("expected a non-empty JSON array"), std::string::npos);
}

}  // namespace
}  // namespace temper
