#include "actors/byte_pair/decoder.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace temper::actors {
namespace {

using nlohmann::json;

const json kToSpace = {{"type", "Replace"}, {"pattern", {{"String", "\u2581"}}}, {"content", " "}};
const json kByteFallback = {{"type", "ByteFallback"}};
const json kFuse = {{"type", "Fuse"}};

json strip(const json& start, const json& stop, const json& content = " ") {
  return {{"type", "Strip"}, {"content", content}, {"start", start}, {"stop", stop}};
}

json sequence(json steps) {
  return {{"type", "Sequence"}, {"decoders", std::move(steps)}};
}

std::string decoded(const json& section, std::vector<std::string> tokens) {
  const json parsed = json::parse(section.dump());  // Numbers of a file are unsigned.
  const auto made = Decoder::parse({parsed, "decoder"});
  return made ? made->decode(std::move(tokens)) : made.error().context;
}

TEST(Decoder, RestoresTheSpacesOfTheLayoutsOfLlama2AndGemma) {
  const std::vector<std::string> tokens{"\u2581\u2581a", "\u2581b", "<0xC3>", "<0xA9>"};
  EXPECT_EQ(decoded(sequence({kToSpace, kByteFallback, kFuse, strip(1, 0)}), tokens), " a b\u00e9");
  EXPECT_EQ(decoded(sequence({kToSpace, kByteFallback, kFuse}), tokens), "  a b\u00e9");
}

TEST(Decoder, JoinsRunsOfBytes) {
  // Expected texts from the library `tokenizers` 0.23.3.
  const auto text = [](std::vector<std::string> tokens) {
    return decoded(kByteFallback, std::move(tokens));
  };
  EXPECT_EQ(text({"<0xC3>", "<0xA9>", "a"}), "\u00e9a");
  EXPECT_EQ(text({"<0xC3>", "a", "<0xA9>"}), "\ufffda\ufffd");
  EXPECT_EQ(text({"<0xC3>", "<0xC3>", "<0xA9>"}), "\ufffd\ufffd\ufffd")
      << "each byte of a run that is not UTF-8";
  EXPECT_EQ(text({"<0xc3>", "<0xA9>"}), "\u00e9");
  EXPECT_EQ(text({"<0xG0>", "<0x4>", "<0x041>", "<0x-1>"}), "<0xG0><0x4><0x041><0x-1>");
  EXPECT_EQ(text({}), "");
}

TEST(Decoder, StripsEachTokenUnlessTheyAreFused) {
  EXPECT_EQ(decoded(strip(1, 0), {"  a", " b", "c "}), " abc ");
  EXPECT_EQ(decoded(sequence({kFuse, strip(1, 0)}), {"  a", " b"}), " a b");
  EXPECT_EQ(decoded(strip(2, 1), {"   a  ", " "}), " a ");
  EXPECT_EQ(decoded(strip(1, 1, "\u2581"), {"\u2581a\u2581\u2581"}), "a\u2581");
}

TEST(Decoder, RestoresTheSpacesOfMetaspace) {
  json metaspace = {{"type", "Metaspace"}, {"replacement", "\u2581"}, {"prepend_scheme", "always"}};
  const std::vector<std::string> tokens{"\u2581\u2581a", "\u2581b"};
  EXPECT_EQ(decoded(metaspace, tokens), "a b");
  metaspace["prepend_scheme"] = "never";
  EXPECT_EQ(decoded(metaspace, tokens), "  a b");
}

TEST(Decoder, NamesWhatItDoesNotSupport) {
  struct Case {
    json section;
    std::string named;
  };
  const std::vector<Case> cases{
      {nullptr, "`decoder` is null"},
      {{{"type", "WordPiece"}}, "`decoder` is {\"type\":\"WordPiece\"}"},
      {{{"type", "Sequence"}}, "`decoder` is"},
      {{{"type", "Sequence"}, {"decoders", kFuse}}, "`decoder` is"},
      {sequence({kFuse, nullptr}), "`decoder` is null"},
      {sequence({kFuse, {{"type", "CTC"}}}), "`decoder` is {\"type\":\"CTC\"}"},
      {sequence({sequence({kFuse})}), "`decoder` is"},
      {strip(-1, 0), "`decoder.start`: expected an integer >= 0, found -1"},
      {strip("1", 0), "`decoder.start`"},
      {strip(1, nullptr), "`decoder.stop`"},
      {strip(1, 0.5), "`decoder.stop`"},
      {strip(1, 0, "ab"), "`decoder.content`: expected one character, found \"ab\""},
      {strip(1, 0, ""), "`decoder.content`"},
      {{{"type", "Metaspace"}, {"replacement", "\u2581"}, {"prepend_scheme", 1}},
       "`decoder.prepend_scheme`"},
      {{{"type", "Replace"}, {"pattern", {{"Regex", "a"}}}, {"content", "b"}},
       "`decoder.pattern`"}};
  for (const Case& c : cases)
    EXPECT_TRUE(decoded(c.section, {"a"}).starts_with(c.named)) << decoded(c.section, {"a"});
}

}  // namespace
}  // namespace temper::actors
