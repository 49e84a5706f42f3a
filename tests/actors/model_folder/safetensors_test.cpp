#include "actors/model_folder/safetensors.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

namespace temper::actors {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

/// A file with the given header and `data_bytes` of zero data.
std::string file_of(const std::string& header, std::size_t data_bytes) {
  const std::uint64_t length = header.size();
  std::string file(8, '\0');
  std::memcpy(file.data(), &length, 8);
  return file + header + std::string(data_bytes, '\0');
}

/// The error of parsing and copying tensor "a" [2] and "b" [3].
std::string error_of(const std::string& file) {
  const auto image = parse_safetensors(bytes_of(file));
  if (!image)
    return image.error().context;
  std::vector<float> a(2);
  std::vector<float> b(3);
  const std::vector<TensorToRead> expected{{"a", {2}, a}, {"b", {3}, b}};
  const Status status = copy_tensors(*image, expected);
  return status ? "" : status.error().context;
}

std::string entry(const std::string& name,
                  const std::string& shape,
                  int begin,
                  int end,
                  const std::string& dtype = "F32") {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape +
         ",\"data_offsets\":[" + std::to_string(begin) + "," + std::to_string(end) + "]}";
}
std::string two(const std::string& a, const std::string& b) {
  return "{" + a + "," + b + "}";
}

TEST(Safetensors, ReadsBackWhatItWrote) {
  const std::vector<float> a{1, 2};
  const std::vector<float> b{-1, 0.5f, 3e38f};
  const std::vector<TensorToWrite> tensors{{"a", {2}, a}, {"b", {1, 3}, b}};
  const std::string file = write_safetensors(tensors, {{"version", "7"}});
  const auto image = parse_safetensors(bytes_of(file));
  ASSERT_TRUE(image) << image.error().context;
  EXPECT_EQ(image->metadata.at("version"), "7");
  std::vector<float> a2(2);
  std::vector<float> b2(3);
  const std::vector<TensorToRead> expected{{"a", {2}, a2}, {"b", {1, 3}, b2}};
  ASSERT_TRUE(copy_tensors(*image, expected));
  EXPECT_EQ(a2, a);
  EXPECT_EQ(b2, b);
}

// The bytes that the reference implementation (Python's safetensors) expects: length, header padded
// with spaces to 8 bytes, data.
TEST(Safetensors, FollowsTheStandardLayout) {
  const std::vector<float> a{1};
  const std::string file = write_safetensors(std::vector<TensorToWrite>{{"a", {1}, a}}, {});
  const std::string header =
      "{\"__metadata__\":{\"format\":\"pt\"},\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_"
      "offsets\":[0,4]}}";
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), 8);
  EXPECT_EQ(length % 8, 0u);
  EXPECT_EQ(file.substr(8, header.size()), header);
  EXPECT_EQ(file.size(), 8 + length + 4);
}

TEST(Safetensors, NamesTheTensorOfABrokenFile) {
  const std::string a = entry("a", "[2]", 0, 8);
  const std::string b = entry("b", "[3]", 8, 20);
  ASSERT_EQ(error_of(file_of(two(a, b), 20)), "");
  const auto names =
      [](const std::string& error, const std::string& tensor, const std::string& why) {
        EXPECT_NE(error.find("tensor '" + tensor + "'"), std::string::npos) << error;
        EXPECT_NE(error.find(why), std::string::npos) << error;
      };
  names(error_of(file_of(two(a, b), 16)), "b", "truncated");
  names(error_of(file_of(two(a, entry("b", "[3]", 4, 16)), 16)), "b", "overlapping");
  names(error_of(file_of(two(a, entry("b", "[3]", 12, 24)), 24)), "b", "gap");
  names(error_of(file_of(two(a, entry("b", "[3]", 8, 16)), 16)), "b", "do not match");
  names(error_of(file_of(two(a, entry("b", "[3]", 8, 20, "F16")), 20)), "b", "F16");
  names(error_of(file_of(two(a, entry("b", "[3]", 8, 20, "BF16")), 20)), "b", "do not match");
  names(error_of(file_of(two(a, entry("b", "[4]", 8, 24)), 24)), "b", "shape [4], expected [3]");
  names(error_of(file_of(two(a, entry("b", "[-3]", 8, 20)), 20)), "b", "found -3");
  names(error_of(file_of("{" + a + "}", 8)), "b", "missing");
  names(error_of(file_of("{" + a + "," + b + "," + entry("c", "[1]", 20, 24) + "}", 24)),
        "c",
        "unknown for this model");
  names(error_of(file_of(two(b, entry("b", "[2]", 0, 8)), 20)), "b", "duplicate name");
  names(error_of(file_of(two(a, "\"b\":{\"dtype\":\"F32\"}"), 20)), "b", "expected dtype");
  EXPECT_NE(error_of(file_of(two(a, b), 21)).find("1 bytes after the last"), std::string::npos);
}

TEST(Safetensors, RejectsValuesThatAreNotFinite) {
  const std::vector<float> a{1, std::numeric_limits<float>::quiet_NaN()};
  const std::vector<float> b{1, 2, 3};
  const std::vector<TensorToWrite> tensors{{"a", {2}, a}, {"b", {3}, b}};
  EXPECT_NE(error_of(write_safetensors(tensors, {}))
                .find("tensor 'a': expected finite values, found nan at element 1"),
            std::string::npos);
}

TEST(Safetensors, RejectsForgedSizesWithoutAllocating) {
  EXPECT_NE(error_of("").find("too short"), std::string::npos);
  EXPECT_NE(error_of(std::string(8, '\xff')).find("truncated"), std::string::npos);
  EXPECT_NE(error_of("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
                .find("git lfs pull"),
            std::string::npos);
  std::string huge(8, '\0');
  huge[4] = 1;  // 2^32 bytes of header in a file of 10.
  EXPECT_NE(error_of(huge + "{}").find("header of 4294967296 bytes"), std::string::npos);
  const std::string overflow = entry("a", "[2147483647,2147483647,2147483647]", 0, 8);
  EXPECT_NE(error_of(file_of("{" + overflow + "}", 8)).find("do not match"), std::string::npos);
  EXPECT_NE(error_of(file_of(std::string(100000, '['), 0)).find("header is not a JSON object"),
            std::string::npos);
  const std::string behind = "{" + entry("a", "[1]", 0, 4) + "}" + std::string(1, '\0') + "{";
  EXPECT_NE(error_of(file_of(behind, 4)).find("header is not a JSON object"), std::string::npos);
  EXPECT_NE(error_of(file_of("{\"a\":", 0)).find("header is not a JSON object"), std::string::npos);
}

TEST(Safetensors, RoundsToBfloat16ToNearestAndTiesToEven) {
  // Of 8 bits of mantissa: 1 + 2^-8 lies between 1 and 1 + 2^-7, 1 + 3 2^-8 between that and the
  // next.
  const std::vector<float> a{1, 1.00390625f, 1.01171875f, -3e38f, 1.003906369f};
  const std::string file =
      write_safetensors(std::vector<TensorToWrite>{{"a", {5}, a}}, {}, StoredType::Bfloat16);
  const auto image = parse_safetensors(bytes_of(file)).value();
  EXPECT_EQ(image.tensors[0].type, StoredType::Bfloat16);
  EXPECT_EQ(image.tensors[0].bytes.size(), 10U);
  std::vector<float> read(5);
  copy_values(image.tensors[0], read);
  EXPECT_EQ(read[0], 1.0f);
  EXPECT_EQ(read[1], 1.0f);
  EXPECT_EQ(read[2], 1.015625f);
  EXPECT_NEAR(read[3], -3e38f, 2e36f);
  EXPECT_EQ(read[4], 1.0078125f);
}

TEST(Safetensors, AcceptsOneOrTwoEqualTiedTensors) {
  std::vector<float> values(2);
  const std::vector<TensorToRead> expected{{"a", {2}, values}, {"b", {2}, values, "a"}};
  const std::vector<float> one{1, 2};
  const std::vector<float> other{1, 3};
  const auto read = [&](const std::vector<TensorToWrite>& tensors) {
    const std::string file = write_safetensors(tensors, {});
    return copy_tensors(parse_safetensors(bytes_of(file)).value(), expected);
  };
  EXPECT_TRUE(read({{"a", {2}, one}}));
  EXPECT_TRUE(read({{"b", {2}, one}}));
  EXPECT_EQ(values, one);
  EXPECT_TRUE(read({{"b", {2}, one}, {"a", {2}, one}}));
  const Status differ = read({{"b", {2}, one}, {"a", {2}, other}});
  ASSERT_FALSE(differ);
  EXPECT_NE(differ.error().context.find("tensor 'a': differs"), std::string::npos);
  EXPECT_FALSE(read({}));
}

}  // namespace
}  // namespace temper::actors
