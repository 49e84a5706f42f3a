#include "sim_hw/queries/queries.hpp"
#include "sim_hw/request/readable.hpp"

#include <gtest/gtest.h>

namespace temper::sim_hw {
namespace {

TEST(Params, ReadsTypedValues) {
  const auto params = Params::parse("m=8192; share=0.5;name=graph;bytes=1e9;");
  ASSERT_TRUE(params);
  EXPECT_EQ(*params->integer("m"), 8192);
  EXPECT_EQ(*params->number("share"), 0.5);
  EXPECT_EQ(*params->text("name"), "graph");
  EXPECT_EQ(*params->integer("bytes"), 1'000'000'000);
  EXPECT_TRUE(params->all_used());
}

TEST(Params, NamesTheKeyOfAMissingOrMalformedValue) {
  const auto params = Params::parse("m=eight;n=1.5");
  EXPECT_EQ(params->integer("m").error().context, "m: expected an integer, found `eight`");
  EXPECT_EQ(params->integer("n").error().context, "n: expected an integer, found `1.5`");
  EXPECT_EQ(params->integer("k").error().context, "k: missing; expected an integer");
  EXPECT_EQ(*params->integer("k", 7), 7);
}

TEST(Params, RefuseIntegersThatADoubleDoesNotHold) {
  const auto params = Params::parse("m=9007199254740991;n=9007199254740993;e=1e16");
  EXPECT_EQ(*params->integer("m"), 9007199254740991);
  EXPECT_EQ(params->integer("n").error().context,
            "n: expected an integer below 2^53, found `9007199254740993`");
  EXPECT_EQ(params->integer("e").error().context,
            "e: expected an integer below 2^53, found `1e16`");
}

TEST(Params, SuggestsTheNearestKnownNameForAnUnusedKey) {
  const auto params = Params::parse("contxt=512");
  EXPECT_EQ(*params->integer("context", 1), 1);
  EXPECT_EQ(params->all_used().error().context,
            "contxt: unknown parameter; did you mean `context`?");
}

TEST(Params, RefusesTextThatIsNotKeyValue) {
  EXPECT_EQ(Params::parse("m").error().context, "expected key=value, found `m`");
  EXPECT_EQ(Params::parse("m=1;m=2").error().context, "m: given twice");
}

TEST(Params, WritesKeysSorted) {
  EXPECT_EQ(Params::parse("n=2;m=1")->to_text(), "m=1;n=2");
  EXPECT_EQ(Params::parse("")->to_text(), "");
}

TEST(Units, ConvertToSi) {
  EXPECT_EQ(*si_factor("ms"), 1e-3);
  EXPECT_EQ(*si_factor("GB"), 1e9);
  EXPECT_EQ(*si_factor("GiB"), 1073741824.0);
  EXPECT_EQ(*si_factor("TFLOP/s"), 1e12);
  EXPECT_EQ(si_factor("Gib").error().context, "unknown unit `Gib`; did you mean `GiB`?");
}

Result<Cost> cost_of_double(const CostContext&, const Request& request) {
  TEMPER_TRY(const double value, request.params.number("value"));
  return Cost{{Metric{"time", "s", 2 * value, {}}}};
}
constexpr Kind kRequestKinds[] = {{"double", "Twice the value.", "value", cost_of_double}};

TEST(Predict, CallsTheKindAndRefusesUnknownOnes) {
  Catalog catalog{"."};
  const CostContext context{catalog, {}};
  EXPECT_EQ(cost_of(context, {"h", 1, "double", *Params::parse("value=3")}, kRequestKinds)
                ->find("time")
                ->value,
            6);
  EXPECT_EQ(
      cost_of(context, {"h", 1, "doubl", *Params::parse("value=3")}, kRequestKinds).error().context,
      "unknown kind `doubl`; did you mean `double`?");
  EXPECT_EQ(cost_of(context, {"h", 1, "double", *Params::parse("value=3;valeu=3")}, kRequestKinds)
                .error()
                .context,
            "double: valeu: unknown parameter; did you mean `value`?");
}

TEST(Predict, ListsKindsSortedAndOnce) {
  for (std::size_t i = 1; i < kinds().size(); ++i)
    EXPECT_LT(kinds()[i - 1].name, kinds()[i].name);
}

TEST(Readable, CountsHaveNoExponent) {
  EXPECT_EQ(readable(13687.2, "count"), "13.69k");
  EXPECT_EQ(readable(2051.6, "count"), "2052");
  EXPECT_EQ(readable(0.31, "count"), "0.31");
  EXPECT_EQ(readable(1300000, "count"), "1300000");
}

}  // namespace
}  // namespace temper::sim_hw
