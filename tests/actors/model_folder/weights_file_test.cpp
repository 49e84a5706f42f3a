#include "actors/model_folder/weights_file.hpp"

#include "actors/model_folder/safetensors.hpp"
#include "core/files.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

namespace temper::actors {
namespace {

/// Three tensors that share pages with their neighbors.
class OpenWeightsFile : public ::testing::Test {
 protected:
  OpenWeightsFile() {
    std::vector<TensorToWrite> tensors;
    for (std::size_t i = 0; i < 3; ++i) {
      values_.emplace_back(5000, static_cast<float>(i + 1));
      tensors.push_back({"t" + std::to_string(i), {5000}, values_.back()});
    }
    EXPECT_TRUE(write_file_atomically(path(), write_safetensors(tensors, {})));
  }
  std::filesystem::path path() const { return folder_ / "model.safetensors"; }

  static bool all_zero(std::span<const std::byte> bytes) {
    return std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; });
  }
  static std::vector<float> values_of(const TensorView& tensor) {
    std::vector<float> values(tensor.bytes.size() / sizeof(float));
    copy_values(tensor, values);
    return values;
  }

  test::TemporaryFolder folder_;
  std::vector<std::vector<float>> values_;
};

TEST_F(OpenWeightsFile, HasOneTensorInMemoryAtATime) {
  WeightsFile file = WeightsFile::open(path()).value();
  const SafetensorsImage image = parse_safetensors(file.bytes()).value();
  ASSERT_EQ(image.tensors.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    const std::span<const std::byte> bytes = image.tensors[i].bytes;
    EXPECT_TRUE(all_zero(bytes)) << "tensor " << i << " was read by open()";
    ASSERT_TRUE(file.read(bytes));
    EXPECT_EQ(values_of(image.tensors[i]), values_[i]);
    file.drop(bytes);
    EXPECT_TRUE(all_zero(bytes)) << "tensor " << i << " is still in memory";
  }
}

TEST_F(OpenWeightsFile, NamesAFileThatIsTruncatedAfterItsHeaderWasRead) {
  WeightsFile file = WeightsFile::open(path()).value();
  const SafetensorsImage image = parse_safetensors(file.bytes()).value();
  std::filesystem::resize_file(path(), std::filesystem::file_size(path()) - 1);
  EXPECT_TRUE(file.read(image.tensors[1].bytes));
  const Status read = file.read(image.tensors[2].bytes);
  ASSERT_FALSE(read);
  EXPECT_TRUE(read.error().context.starts_with(path().string() + ": expected "))
      << read.error().context;
  EXPECT_NE(read.error().context.find("truncated while it was read"), std::string::npos);
}

TEST_F(OpenWeightsFile, DoesNotReadAHeaderAboveTheLimit) {
  const std::uint64_t length = kLongestSafetensorsHeader + 1;
  std::string text(5000, '{');
  std::memcpy(text.data(), &length, sizeof length);
  ASSERT_TRUE(write_file_atomically(path(), text));
  std::filesystem::resize_file(path(), length + 100);  // the rest takes no space on disk
  const WeightsFile file = WeightsFile::open(path()).value();
  EXPECT_TRUE(all_zero(file.bytes().subspan(4096)));
  const auto parsed = parse_safetensors(file.bytes());
  ASSERT_FALSE(parsed);
  EXPECT_NE(parsed.error().context.find("header of 100000001 bytes, expected at most 100000000"),
            std::string::npos)
      << parsed.error().context;
}

}  // namespace
}  // namespace temper::actors
