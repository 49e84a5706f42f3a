#include "actors/byte_pair/added_tokens.hpp"

#include <gtest/gtest.h>

namespace temper::actors {
namespace {

/// Parts of a text, each added token in brackets.
std::string parts(const std::vector<AddedToken>& tokens, std::string_view text) {
  std::string out;
  for (const TextPart& part : AddedTokens(tokens).split(text))
    out += part.token ? "[" + std::string(part.text) + "]" : std::string(part.text);
  return out;
}

AddedToken token(std::string text) {
  AddedToken out;
  out.text = std::move(text);
  return out;
}

TEST(AddedTokens, MatchTheLongestAtEachPlace) {
  EXPECT_EQ(parts({token("<a>"), token("<a>b")}, "x<a>y<a>b<a"), "x[<a>]y[<a>b]<a");
  EXPECT_EQ(parts({token("<a>")}, ""), "");
  EXPECT_EQ(parts({token("")}, "ab"), "ab");
}

TEST(AddedTokens, PreferSpecialTokensOfTheSameText) {
  AddedToken special = token("<a>");
  special.special = true;
  special.id = 7;
  EXPECT_EQ(AddedTokens({token("<a>"), special}).split("<a>").front().token, 7);
}

TEST(AddedTokens, IncludeWhiteSpaceOnTheSidesThatTheyStrip) {
  AddedToken left = token("<l>");
  left.lstrip = true;
  AddedToken right = token("<r>");
  right.rstrip = true;
  const std::vector<AddedToken> tokens{left, right, token("\n")};
  EXPECT_EQ(parts(tokens, "a <l> b <r> c"), "a[ <l>] b [<r> ]c");
  EXPECT_EQ(parts(tokens, "a\u00a0\u3000<l>"), "a[\u00a0\u3000<l>]");
  EXPECT_EQ(parts(tokens, "<r>\u2003\t"), "[<r>\u2003\t]");
  EXPECT_EQ(parts(tokens, "<r> <l>"), "[<r> ][<l>]") << "the first token takes the space";
}

TEST(AddedTokens, InsideTheSpaceOfAnotherCountWithTheirText) {
  // As the library `tokenizers` 0.23.3: "<r>" takes the line break, which is a token too.
  AddedToken right = token("<r>");
  right.rstrip = true;
  EXPECT_EQ(parts({right, token("\n")}, "<r>\nb"), "[<r>\n][\n]b");
}

}  // namespace
}  // namespace temper::actors
