#include "core/indirect.hpp"

#include "core/json.hpp"
#include "core/msgpack.hpp"

#include <gtest/gtest.h>

namespace temper {
namespace {

struct Settings;  // incomplete where its owner is defined

struct Owner {
  int number = 0;
  Indirect<Settings> settings{};
};
void describe(auto& v, Owner& o) {
  v.field(1, "number", o.number);
  v.field(2, "settings", o.settings);
}

Owner copied(const Owner& owner) {
  return owner;  // copied and destroyed before Settings is complete
}

struct Settings {
  int limit = 7;
};
void describe(auto& v, Settings& s) {
  v.field(1, "limit", s.limit);
}

/// The same owner with the settings in place.
struct Plain {
  int number = 0;
  Settings settings{};
};
void describe(auto& v, Plain& p) {
  v.field(1, "number", p.number);
  v.field(2, "settings", p.settings);
}

TEST(Indirect, HoldsADefaultUntilItIsSet) {
  Owner owner;
  EXPECT_EQ(std::as_const(owner).settings->limit, 7);
  EXPECT_EQ(copied(owner).settings->limit, 7);
  owner.settings->limit = 8;
  EXPECT_EQ(std::as_const(owner).settings->limit, 8);
}

TEST(Indirect, CopiesItsValue) {
  Owner owner{1, Settings{9}};
  Owner copy = copied(owner);
  copy.settings->limit = 10;
  EXPECT_EQ(owner.settings->limit, 9);
  owner = copy;
  EXPECT_EQ(owner.settings->limit, 10);
  const Owner& same = owner;
  owner = same;
  EXPECT_EQ(owner.settings->limit, 10);
  owner = Owner{};
  EXPECT_EQ(owner.settings->limit, 7);
}

TEST(Indirect, IsEncodedAndDecodedAsItsValueInPlace) {
  const Owner owner{1, Settings{9}};
  EXPECT_EQ(encode(owner), encode(Plain{1, {9}}));
  EXPECT_EQ(to_json(owner), to_json(Plain{1, {9}}));
  EXPECT_EQ(encode(Owner{}), encode(Plain{}));
  const auto read = decode<Owner>(encode(owner));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->settings->limit, 9);
}

}  // namespace
}  // namespace temper
