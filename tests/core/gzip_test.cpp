#include "core/gzip.hpp"

#include "tests/support/gunzip.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace temper {
namespace {

class GzipFileTest : public ::testing::Test {
 protected:
  std::filesystem::path path() const { return folder_ / "x.gz"; }

 private:
  const test::TemporaryFolder folder_;
};

TEST_F(GzipFileTest, ContainsAllPiecesInOrder) {
  auto file = GzipFile::create(path());
  ASSERT_TRUE(file.has_value());
  std::string all;
  for (int i = 0; i < 50000; ++i) {
    const std::string piece = "piece " + std::to_string(i * 7919) + "\n";
    ASSERT_TRUE(file->append(piece).has_value());
    all += piece;
  }
  ASSERT_TRUE(file->close().has_value());
  EXPECT_EQ(test::gunzip(path()), all);
  EXPECT_LT(std::filesystem::file_size(path()), all.size() / 2);
}

TEST_F(GzipFileTest, ReplacesAnOldFileAndMayBeEmpty) {
  ASSERT_TRUE(write_file_atomically(path(), std::string(1000, 'x')).has_value());
  auto file = GzipFile::create(path());
  ASSERT_TRUE(file.has_value());
  ASSERT_TRUE(file->close().has_value());
  EXPECT_EQ(test::gunzip(path()), "");
  EXPECT_LT(std::filesystem::file_size(path()), 100U);
}

TEST_F(GzipFileTest, NamesAMissingFolder) {
  const auto file = GzipFile::create(path() / "nowhere" / "x.gz");
  ASSERT_FALSE(file.has_value());
  EXPECT_NE(file.error().context.find("nowhere"), std::string::npos);
}

}  // namespace
}  // namespace temper
