#include "core/read_at.hpp"

#include "core/files.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <array>

namespace temper {
namespace {

class ReadAt : public ::testing::Test {
 protected:
  ReadAt() { EXPECT_TRUE(write_file_atomically(files_ / "file", "0123456789")); }

  std::string read(std::size_t size, std::uint64_t offset) {
    std::string text(size, '?');
    const FileDescriptor file = open_to_read(files_ / "file").value();
    text.resize(read_at(file, std::as_writable_bytes(std::span(text)), offset).value());
    return text;
  }

 private:
  test::TemporaryFolder files_;
};

TEST_F(ReadAt, ReadsFromItsPlace) {
  EXPECT_EQ(read(3, 0), "012");
  EXPECT_EQ(read(3, 4), "456");
  EXPECT_EQ(read(0, 4), "");
}

TEST_F(ReadAt, ReadsLessOnlyAtTheEndOfTheFile) {
  EXPECT_EQ(read(6, 4), "456789");
  EXPECT_EQ(read(7, 4), "456789");
  EXPECT_EQ(read(3, 10), "");
  EXPECT_EQ(read(3, 1000), "");
}

TEST_F(ReadAt, WhatIsNotAnOpenFileIsAnError) {
  std::array<std::byte, 4> bytes{};
  EXPECT_EQ(read_at(FileDescriptor(), bytes, 0).error().code, ErrorCode::Io);
}

}  // namespace
}  // namespace temper
