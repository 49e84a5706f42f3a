#include "core/msgpack.hpp"

#include "tests/core/sample_types.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace temper {
namespace {

using namespace std::chrono_literals;
using test::Everything;
using test::random_everything;
using test::Shape;

TEST(Msgpack, RandomValuesReadBackEqual) {
  Random rng(1, "msgpack");
  for (int i = 0; i < 2000; ++i) {
    const Everything value = random_everything(rng);
    const std::string bytes = encode(value);
    const Result<Everything> back = decode<Everything>(bytes);
    ASSERT_TRUE(back) << back.error().context;
    EXPECT_EQ(*back, value);
    EXPECT_EQ(encode(*back), bytes) << "the encoding is canonical";
  }
}

TEST(Msgpack, EncodingIsTheShortestFormInDeclarationOrder) {
  struct Case {
    test::Small value;
    std::string bytes;
  };
  // Map of 2; field 1 = Tokens, field 2 = enumeration.
  const Case cases[] = {
      {{Tokens(5), Shape::Square}, {'\x82', 1, 5, 2, 3}},
      {{Tokens(-1), Shape::Round}, {'\x82', 1, '\xff', 2, 0}},
      {{Tokens(300), Shape::Round}, {'\x82', 1, '\xcd', 1, 44, 2, 0}},
  };
  for (const Case& c : cases)
    EXPECT_EQ(encode(c.value), c.bytes);
}

TEST(Msgpack, NumbersWhereIntegersEndReadBackEqual) {
  for (const double whole : {0x1p53, 0x1p63, 0x1p64, 0x1p65}) {
    for (const double value :
         {whole, -whole, std::nextafter(whole, 0), std::nextafter(-whole, 0)}) {
      const auto back = decode<double>(encode(value));
      ASSERT_TRUE(back);
      EXPECT_EQ(*back, value);
    }
    const auto small = static_cast<float>(whole);
    EXPECT_EQ(decode<float>(encode(small)).value(), small);
  }
}

TEST(Msgpack, EncodeToAppends) {
  std::string out = "head";
  encode_to(out, std::int64_t{7});
  EXPECT_EQ(out, std::string("head\x07"));
}

TEST(Msgpack, BlobsAreLittleEndianBin) {
  EXPECT_EQ(encode(std::vector<std::int32_t>{1, -2}),
            std::string("\xc4\x08\x01\0\0\0\xfe\xff\xff\xff", 10));
  EXPECT_EQ(encode(std::vector<std::uint32_t>{1}), std::string("\x91\x01", 2));
  EXPECT_FALSE(decode<std::vector<float>>(std::string("\xc4\x03\0\0\0", 5)));
}

TEST(Msgpack, VariantsTravelByName) {
  const test::Either value = test::Small{Tokens(1), Shape::Square};
  const std::string bytes = encode(value);
  EXPECT_EQ(bytes, std::string("\x92\xa5small\x82\x01\x01\x02\x03", 12));
  EXPECT_EQ(decode<test::Either>(bytes).value(), value);
  const auto unknown = decode<test::Either>(std::string("\x92\xa5smell\x80", 8));
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().context, "unknown alternative \"smell\"");
}

TEST(Msgpack, UnknownFieldsAreSkippedAndMissingOnesKeepTheDefault) {
  // {9: [1, {2: 3}], 2: 3, "x": nil}: the known field comes after an unknown container.
  const std::string bytes("\x83\x09\x92\x01\x81\x02\x03\x02\x03\xa1x\xc0", 12);
  const auto value = decode<test::Small>(bytes);
  ASSERT_TRUE(value) << value.error().context;
  EXPECT_EQ(value->tokens, Tokens(1)) << "the default";
  EXPECT_EQ(value->shape, Shape::Square);
}

struct WithNews {
  Tokens old;
  std::optional<std::string> news;
};
void describe(auto& v, WithNews& w) {
  v.field(1, "old", w.old);
  v.field(2, "news", w.news, {.left_out_if_empty = true});
}

TEST(Msgpack, AnEmptyFieldThatMayBeLeftOutIsNotThere) {
  EXPECT_EQ(encode(WithNews{Tokens(5), {}}), (std::string{'\x81', 1, 5}));
  EXPECT_EQ(encode(WithNews{Tokens(5), "x"}), (std::string{'\x82', 1, 5, 2, '\xa1', 'x'}));
  EXPECT_FALSE(decode<WithNews>(encode(WithNews{Tokens(5), {}}))->news);
  EXPECT_EQ(decode<WithNews>(encode(WithNews{Tokens(5), "x"}))->news, "x");
}

TEST(Msgpack, FieldsMayComeInAnyOrder) {
  const auto value = decode<test::Small>(std::string("\x82\x02\x03\x01\x07", 5));
  ASSERT_TRUE(value);
  EXPECT_EQ(value->tokens, Tokens(7));
  EXPECT_EQ(value->shape, Shape::Square);
}

TEST(Msgpack, TruncationAtEveryByteIsAnError) {
  Random rng(2, "msgpack");
  const std::string bytes = encode(random_everything(rng));
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(decode<Everything>(std::string_view(bytes).substr(0, size))) << size;
  EXPECT_FALSE(decode<Everything>(bytes + '\0')) << "trailing byte";
}

TEST(Msgpack, RandomDamageNeverCrashes) {
  Random rng(3, "msgpack");
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = encode(random_everything(rng));
    for (int flips = 0; flips < 3; ++flips)
      bytes[rng.below(bytes.size())] = static_cast<char>(rng.below(256));
    (void)decode<Everything>(bytes);
  }
}

TEST(Msgpack, ForgedHeadersAreErrorsNotAllocations) {
  const std::string forged[] = {
      std::string("\xdd\xff\xff\xff\xff", 5),      // array of 4 G
      std::string("\xdf\xff\xff\xff\xff", 5),      // map of 4 G
      std::string("\xdb\xff\xff\xff\xff", 5),      // string of 4 GiB
      std::string("\xc6\xff\xff\xff\xff", 5),      // bin of 4 GiB
      std::string("\xc9\xff\xff\xff\xff", 5),      // extension of 4 GiB
      std::string("\xdd\xff\xff\xff\xff\x01", 6),  // 4 G elements, one present
      std::string("\xc1", 1),                      // never used
      std::string(),
  };
  for (const std::string& bytes : forged) {
    EXPECT_FALSE(decode<std::vector<std::uint64_t>>(bytes));
    EXPECT_FALSE(decode<Everything>(bytes));
    EXPECT_FALSE(decode<std::string>(bytes));
    EXPECT_FALSE(decode<std::vector<float>>(bytes));
  }
  std::string nested;
  for (int i = 0; i < 100; ++i)
    nested.append("\xdd\x7f\xff\xff\xff", 5);
  const auto deep = decode<std::vector<std::uint64_t>>(nested);
  ASSERT_FALSE(deep);
  EXPECT_EQ(deep.error().context, "nested deeper than 64");
}

TEST(Msgpack, ManyTinyValuesStopAtTheLimit) {
  const std::string bytes = encode(std::vector<std::uint64_t>(1000));
  EXPECT_TRUE(decode<std::vector<std::uint64_t>>(bytes, {.values = 1001}));
  const auto over = decode<std::vector<std::uint64_t>>(bytes, {.values = 1000});
  ASSERT_FALSE(over);
  EXPECT_EQ(over.error().context, "more than 1000 values");
}

TEST(Msgpack, IntegersAreRangeChecked) {
  EXPECT_FALSE(decode<std::uint8_t>(encode(256)));
  EXPECT_FALSE(decode<std::uint64_t>(encode(-1)));
  EXPECT_FALSE(decode<std::int32_t>(encode(std::int64_t{1} << 40)));
  EXPECT_EQ(decode<std::int8_t>(encode(-128)).value(), -128);
  EXPECT_EQ(decode<std::uint64_t>(encode(UINT64_MAX)).value(), UINT64_MAX);
  EXPECT_EQ(decode<std::int64_t>(encode(INT64_MIN)).value(), INT64_MIN);
  // A positive number in a signed form (0xd0: int8) is the same number.
  EXPECT_EQ(decode<std::uint32_t>(std::string("\xd0\x05", 2)).value(), 5U);
}

TEST(Msgpack, ErrorsNameThePathOfTheField) {
  Everything value;
  value.rows = {{}, {Tokens(77), Shape::Square}};
  std::string bytes = encode(value);
  const std::string good = encode(value.rows[1]);
  std::string bad = good;
  bad[2] = '\xc0';  // rows[1].tokens := nil
  bytes.replace(bytes.rfind(good), good.size(), bad);
  const auto broken = decode<Everything>(bytes);
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().context, "rows[1].tokens: expected an integer, found nil");
  EXPECT_EQ(broken.error().code, ErrorCode::Corrupt);
}

TEST(Msgpack, AnUnknownEnumeratorIsAnError) {
  const auto value = decode<test::Small>(std::string("\x81\x02\x02", 3));
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().context, "shape: unknown enumerator 2");
}

}  // namespace
}  // namespace temper
