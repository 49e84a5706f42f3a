// Schemas of described structs for programs in other languages.
#include "core/schema.hpp"

#include <gtest/gtest.h>

namespace temper {
namespace schema_test {

enum class Color { Red, Green };

struct Outer {
  struct Inner {
    std::optional<Duration> pause;
  };
  std::int32_t count = 3;
  Color color = Color::Green;
  std::vector<Inner> parts;
  std::vector<std::int32_t> tokens;
  std::map<std::string, double> weights;
  Duration wait = std::chrono::microseconds(5);
  std::string name = "a \"name\"";
};
void describe(auto& v, Outer::Inner& i) {
  v.field(1, "pause", i.pause);
}
void describe(auto& v, Outer& o) {
  v.field(1, "count", o.count, {.doc = "How many."});
  v.field(2, "color", o.color);
  v.field(4, "parts", o.parts);
  v.field(5, "tokens", o.tokens);
  v.field(6, "weights", o.weights);
  v.field(7, "wait", o.wait);
  v.field(8, "name", o.name);
}

}  // namespace schema_test

template <>
struct EnumNames<schema_test::Color> {
  using C = schema_test::Color;
  static constexpr std::array<std::pair<C, std::string_view>, 2> value{
      {{C::Red, "red"}, {C::Green, "green"}}};
};

namespace {

TEST(Schema, NamesEveryFieldWithItsTypeAndDefault) {
  Schema schema;
  EXPECT_EQ(schema.add<schema_test::Outer>(), "Outer");
  EXPECT_EQ(
      to_json(schema.structs.at("Outer")),
      R"({"fields":[{"id":1,"name":"count","type":"integer","doc":"How many.","default":"3"},)"
      R"({"id":2,"name":"color","type":"Color","doc":"","default":"\"green\""},)"
      R"({"id":4,"name":"parts","type":"list<Outer.Inner>","doc":"","default":""},)"
      R"({"id":5,"name":"tokens","type":"int32[]","doc":"","default":""},)"
      R"({"id":6,"name":"weights","type":"map<text, number>","doc":"","default":""},)"
      R"({"id":7,"name":"wait","type":"duration","doc":"","default":"5000"},)"
      R"({"id":8,"name":"name","type":"text","doc":"","default":"\"a \\\"name\\\"\""}]})");
}

TEST(Schema, ContainsEveryReferencedType) {
  Schema schema;
  schema.add<schema_test::Outer>();
  EXPECT_EQ(schema.structs.at("Outer.Inner").fields.at(0).type, "optional<duration>");
  EXPECT_EQ(schema.enumerations.at("Color"), (std::vector<std::string>{"red", "green"}));
}

}  // namespace
}  // namespace temper
