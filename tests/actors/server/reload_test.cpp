#include "actors/server/reload.hpp"

#include <gtest/gtest.h>

namespace temper::actors {
namespace {

TEST(Reload, ParsesMethodPathAndBody) {
  const auto call = parse_reload(R"(POST /v1/load?x=1 {"path": "{model}", "name": "{label}"})");
  ASSERT_TRUE(call) << call.error().context;
  EXPECT_EQ(call->method, "POST");
  EXPECT_EQ(call->target, "/v1/load?x=1");
  const ServerCall filled = fill_reload(*call, R"(/a "b"/v3)", "v3-ab");
  EXPECT_EQ(filled.body, R"({"path": "/a \"b\"/v3", "name": "v3-ab"})");
}

TEST(Reload, AcceptsTheFolderInThePath) {
  const auto call = parse_reload("PUT /load?path={model}&name={label}");
  ASSERT_TRUE(call) << call.error().context;
  EXPECT_EQ(fill_reload(*call, "/a b/v3", "v3").target, "/load?path=/a%20b/v3&name=v3");
  EXPECT_TRUE(fill_reload(*call, "/a", "v3").body.empty());
}

TEST(Reload, NamesWhatIsMissing) {
  const auto said = [](std::string_view text) { return parse_reload(text).error().context; };
  EXPECT_NE(said("/reload").find("expected `METHOD /PATH`"), std::string::npos);
  EXPECT_NE(said("POST reload {model}").find("expected `METHOD /PATH`"), std::string::npos);
  EXPECT_NE(said("LOAD /x?p={model}").find("POST, PUT or GET"), std::string::npos);
  EXPECT_NE(said("POST /x {model}").find("a JSON body"), std::string::npos);
  EXPECT_NE(said("POST /x {}").find("{model}"), std::string::npos);
}

}  // namespace
}  // namespace temper::actors
