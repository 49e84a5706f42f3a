#include "core/yaml.hpp"

#include "tests/core/sample_types.hpp"

#include <gtest/gtest.h>

namespace temper {
namespace {

using namespace std::chrono_literals;
using test::Shape;
using test::Small;

struct Sample {
  bool flag = false;
  std::int8_t tiny = 0;
  std::uint64_t big = 0;
  double number = 0.5;
  std::string text;
  CardId card;
  Bytes size{0};
  Duration wait{0};
  Shape shape = Shape::Round;
  std::optional<std::int32_t> maybe;
  std::vector<std::string> words;
  std::vector<CardId> cards;
  std::vector<Small> rows;
  std::map<std::string, Small> named;
  Small inner;
  std::vector<Shape> shapes;
  bool operator==(const Sample&) const = default;
};
void describe(auto& v, Sample& s) {
  v.field(1, "flag", s.flag);
  v.field(2, "tiny", s.tiny);
  v.field(3, "big", s.big);
  v.field(4, "number", s.number, {.min = -1e10, .max = 1e10});
  v.field(5, "text", s.text);
  v.field(6, "card", s.card);
  v.field(7, "size", s.size);
  v.field(8, "wait", s.wait, {.max = Duration(100h * 24)});
  v.field(9, "shape", s.shape);
  v.field(10, "maybe", s.maybe);
  v.field(11, "words", s.words);
  v.field(12, "cards", s.cards);
  v.field(13, "rows", s.rows);
  v.field(14, "named", s.named);
  v.field(15, "inner", s.inner);
  v.field(16, "shapes", s.shapes);
}

Sample random_sample(Random& rng) {
  Sample s;
  s.flag = rng.chance(0.5);
  s.tiny = static_cast<std::int8_t>(rng.next());
  s.big = static_cast<std::uint64_t>(test::random_integer(rng));
  s.number = rng.normal() * 1e6;
  s.text = test::random_text(rng);
  s.card = CardId(static_cast<std::uint32_t>(rng.below(384)));
  s.size = Bytes(static_cast<std::int64_t>(rng.below(1ULL << 50)));
  s.wait = Duration(static_cast<std::int64_t>(rng.below(1ULL << 52)));
  s.shape = rng.chance(0.5) ? Shape::Round : Shape::Square;
  if (rng.chance(0.5))
    s.maybe = static_cast<std::int32_t>(rng.next());
  for (std::uint64_t n = rng.below(4); n > 0; --n) {
    s.words.push_back(test::random_text(rng));
    s.cards.push_back(CardId(static_cast<std::uint32_t>(n)));
    s.rows.push_back(test::random_small(rng));
    s.named[test::random_text(rng)] = test::random_small(rng);
  }
  s.inner = test::random_small(rng);
  return s;
}

/// Every issue as one line.
std::string issues(std::string_view text, const std::vector<std::string>& sets = {}) {
  const auto read = read_yaml<Sample>("x.yaml", text, sets);
  return render(locate(read.document, read.issues));
}

Sample value(std::string_view text, const std::vector<std::string>& sets = {}) {
  const auto read = read_yaml<Sample>("x.yaml", text, sets);
  EXPECT_EQ(render(locate(read.document, read.issues)), "");
  return read.value;
}

TEST(Yaml, RandomValuesReadBackEqual) {
  Random rng(1, "yaml");
  for (int i = 0; i < 300; ++i) {
    const Sample sample = random_sample(rng);
    const std::string text = to_yaml(sample);
    const auto read = read_yaml<Sample>("x.yaml", text);
    ASSERT_EQ(render(locate(read.document, read.issues)), "") << text;
    ASSERT_EQ(read.value, sample) << text;
  }
}

TEST(Yaml, AmbiguousTextReadsBack) {
  for (const char* text :
       {"",     "null", "~",     "true", "123", "-",   "- a",  "a: b", "#x",  " a ",
        "a\nb", "a\tb", "\"q\"", "\\",   "...", "---", "é",    "0x1f", ".5",  "[a]",
        "*a",   "&a",   "!a",    "%a",   "@a",  "`a`", "\x01", "yes",  "a'b", "null "}) {
    Sample sample;
    sample.text = text;
    sample.words = {text, text};
    sample.named[text] = {};
    EXPECT_EQ(value(to_yaml(sample)), sample) << to_yaml(sample);
  }
}

TEST(Yaml, MissingKeysKeepTheirDefaults) {
  const Sample sample = value("inner: {tokens: 7}");
  EXPECT_EQ(sample.inner.tokens, Tokens(7));
  EXPECT_EQ(sample.inner.shape, Shape::Round);
  EXPECT_EQ(sample.number, 0.5);
}

TEST(Yaml, ReportsAllErrorsInTheOrderOfTheFile) {
  EXPECT_EQ(
      issues("inner:\n"
             "  tokns: 3\n"
             "  shape: sqare\n"
             "flag: yes\n"
             "tiny: 300\n"
             "big: -1\n"
             "number: abc\n"
             "size: 5\n"
             "wait: 3 parsecs\n"
             "words: a\n"
             "cards: [0, x, -1]\n"
             "flag: true\n"),
      "x.yaml:2: inner.tokns: unknown key; did you mean `tokens`?\n"
      "x.yaml:3: inner.shape: expected one of `round`, `square`, found `sqare`; did you mean "
      "`square`?\n"
      "x.yaml:5: tiny: expected an integer in range, found `300`\n"
      "x.yaml:6: big: expected an integer in range, found `-1`\n"
      "x.yaml:7: number: expected a number, found `abc`\n"
      "x.yaml:8: size: expected a size such as 64MiB, found `5`: missing unit (one of TiB, GiB, "
      "MiB, KiB, TB, GB, MB, kB, B)\n"
      "x.yaml:9: wait: expected a duration such as 250ms, found `3 parsecs`: unknown unit "
      "\"parsecs\" (one of h, min, s, ms, us, ns)\n"
      "x.yaml:10: words: expected a list such as [a, b], found `a`\n"
      "x.yaml:11: cards[1]: expected an integer, found `x`\n"
      "x.yaml:11: cards[2]: expected an integer in range, found `-1`\n"
      "x.yaml:12: flag: occurs twice; first in line 4\n");
}

TEST(Yaml, BoundsAreInclusive) {
  EXPECT_EQ(issues("inner: {tokens: 0}"), "");
  EXPECT_EQ(issues("inner: {tokens: 100}"), "");
  EXPECT_EQ(issues("inner: {tokens: 101}"),
            "x.yaml:1: inner.tokens: must be between 0 and 100, found `101`\n");
  EXPECT_EQ(issues("wait: 3000h"), "x.yaml:1: wait: must be at most 2400h, found `3000h`\n");
}

TEST(Yaml, InvalidValuesKeepTheDefault) {
  for (const char* text : {"inner: {tokens: 101}",
                           "inner: {tokens: -9223372036854775808}",
                           "number: 1e300",
                           "number: nan",
                           "wait: 3000h",
                           "tiny: 128",
                           "maybe: x",
                           "words: {a: b}",
                           "cards: [1, -1]",
                           "rows: [{tokens: 1}, {tokens: 101}]",
                           "named: {a: {tokens: 101}}"}) {
    EXPECT_NE(issues(text), "") << text;
    EXPECT_EQ(read_yaml<Sample>("x.yaml", text).value, Sample()) << text;
  }
}

TEST(Yaml, NumbersInQuotesAreText) {
  EXPECT_EQ(issues("tiny: \"3\""), "x.yaml:1: tiny: expected an integer, found the text \"3\"\n");
  EXPECT_EQ(value("text: 3").text, "3");
}

TEST(Yaml, QuotedNamesAndQuantitiesAreAccepted) {
  const std::vector<std::pair<const char*, const char*>> same{
      {"shape: square", "shape: \"square\""},
      {"shape: square", "shape: 'square'"},
      {"shape: square", "{\"shape\": \"square\"}"},
      {"inner: {shape: square}", "{\"inner\": {\"shape\": \"square\"}}"},
      {"rows: [{shape: square}]", "rows:\n  - shape: \"square\""},
      {"named: {a: {shape: square}}", "named: {\"a\": {\"shape\": \"square\"}}"},
      {"shapes: [square, round]", "shapes: [\"square\", 'round']"},
      {"size: 64MiB", "size: \"64MiB\""},
      {"wait: 250ms", "wait: '250ms'"},
      {"text: square", "text: \"square\""},
      {"words: [a, b]", "words: [\"a\", 'b']"}};
  for (const auto& [plain, quoted] : same) {
    EXPECT_EQ(value(plain), value(quoted)) << quoted;
    EXPECT_NE(value(plain), Sample()) << plain;
  }
  EXPECT_EQ(value("text: x", {"shape='square'"}).shape, Shape::Square);
  EXPECT_EQ(value("text: x", {"shape=\"square\""}).shape, Shape::Square);
}

TEST(Yaml, QuotesDoNotMakeInvalidValuesValid) {
  for (const char* text : {"shape: \"sqare\"",
                           "shape: ''",
                           "shape: |\n  square\n",
                           "shapes: [\"square \"]",
                           "size: \"64\"",
                           "wait: \"soon\"",
                           "flag: \"true\"",
                           "tiny: '3'",
                           "number: \"0.5\"",
                           "maybe: \"3\"",
                           "card: \"3\"",
                           "cards: [\"3\"]"})
    EXPECT_NE(issues(text), "") << text;
}

TEST(Yaml, NumbersAreWholeAndFinite) {
  for (const char* text :
       {"1e400", ".inf", ".nan", "nan", "inf", "1_000", "0x10", "1 2", "", "--1", "+-1"})
    EXPECT_NE(issues("number: " + std::string(text)), "") << text;
  for (const char* text : {"1.5", "1e3", "99999999999999999999", "+", "- 1"})
    EXPECT_NE(issues("tiny: " + std::string(text)), "") << text;
  EXPECT_EQ(value("number: +1.5e1").number, 15);
}

TEST(Yaml, SuggestsAKeyOfAnotherSectionWithItsPath) {
  EXPECT_EQ(issues("shap: square\ntokens: 3"),
            "x.yaml:1: shap: unknown key; did you mean `shape`?\n"
            "x.yaml:2: tokens: unknown key; did you mean `inner.tokens`?\n");
}

TEST(Yaml, StructsInListsAndMapsNameTheirPath) {
  EXPECT_EQ(issues("rows:\n- tokens: 1\n- tokns: 1\nnamed:\n  a: {tokens: x}\n"),
            "x.yaml:3: rows[1].tokns: unknown key; did you mean `tokens`?\n"
            "x.yaml:5: named.a.tokens: expected an integer, found `x`\n");
}

TEST(Yaml, SetsOverrideTheFileAndTheLastOneWins) {
  const Sample sample =
      value("inner: {tokens: 3, shape: square}\nwords: [a, b]\n",
            {"inner.tokens=4", "inner.tokens=5", "words=[c]", "wait=250ms", "maybe=1"});
  EXPECT_EQ(sample.inner.tokens, Tokens(5));
  EXPECT_EQ(sample.inner.shape, Shape::Square) << "the rest of a section stays";
  EXPECT_EQ(sample.words, std::vector<std::string>{"c"});
  EXPECT_EQ(sample.wait, 250ms);
  EXPECT_EQ(sample.maybe, 1);
  EXPECT_EQ(value("inner: {tokens: 3}", {"inner={shape: square}"}).inner,
            (Small{Tokens(3), Shape::Square}));
}

TEST(Yaml, EntriesOfAMapAreRemovedByAnEmptyMapOrByNull) {
  const std::string text = "named:\n  a: {tokens: 7}\n  b: {tokens: 2}\n";
  const auto names = [&](const std::vector<std::string>& sets) {
    std::string found;
    for (const auto& [name, small] : value(text, sets).named)
      found += name;
    return found;
  };
  EXPECT_EQ(names({"named.c={tokens: 3}"}), "abc");
  EXPECT_EQ(names({"named={c: {tokens: 3}}"}), "abc") << "entries are added";
  EXPECT_EQ(names({"named={}"}), "");
  EXPECT_EQ(names({"named={}", "named.c={tokens: 3}"}), "c");
  EXPECT_EQ(names({"named.a=null"}), "b");
  EXPECT_EQ(names({"named={a: null, c: {tokens: 3}}"}), "bc");
  EXPECT_EQ(value(text, {"named.a={}"}).named.at("a").tokens, Tokens(7))
      << "the keys of a section have defaults";
  EXPECT_EQ(issues(text, {"named.c=null"}),
            "--set named.c=null: named.c: expected keys and values, found nothing\n")
      << "there is no such entry";
}

TEST(Yaml, QuotesAWrongSet) {
  EXPECT_EQ(
      issues("inner: {tokens: 3}\ntext: a\n",
             {"inner.tokns=4",
              "inner",
              "=3",
              "inner..tokens=3",
              "text.a=3",
              "words=[a",
              "wait=3",
              "tiny="}),
      "--set inner.tokns=4: inner.tokns: unknown key; did you mean `tokens`?\n"
      "--set inner: expected KEY=VALUE, such as rollout.replicas=2\n"
      "--set =3: expected KEY=VALUE, such as rollout.replicas=2\n"
      "--set inner..tokens=3: inner..tokens: expected a name between the dots, found none\n"
      "--set text.a=3: text.a: `text` is a value, not a section with keys\n"
      "--set words=[a: not YAML: end of sequence flow not found; check quotes, brackets and "
      "indentation\n"
      "--set wait=3: wait: expected a duration such as 250ms, found `3`: missing unit (one of h, "
      "min, s, ms, us, ns)\n"
      "--set tiny=: tiny: expected an integer, found nothing\n");
}

TEST(Yaml, ACommandLineHasNoComments) {
  const std::vector<std::pair<std::string, std::string>> kept{
      {"text=runs/exp #1", "runs/exp #1"},
      {"text=#1", "#1"},
      {"text= # only", "# only"},
      {"text=a#b", "a#b"},
      {"text=a #b #c ", "a #b #c"},
      {"text=a\t#b", "a\t#b"},
      {"text=it's #1", "it's #1"},
      {"text=say \"x\" #1", "say \"x\" #1"},
      {"text=\"runs/exp #1\"", "runs/exp #1"},
      {"text='runs/exp #1'", "runs/exp #1"},
      {"text='it''s #1'", "it's #1"},
      {R"(text="a \" #1")", "a \" #1"}};
  for (const auto& [set, text] : kept)
    EXPECT_EQ(value("text: x\n", {set}).text, text) << set;
  const std::vector<std::string> refused{"text=\"runs/exp\" #1",
                                         "text='runs/exp' #1",
                                         "words=[a, b] #c",
                                         "words=[a, #b\t]",
                                         "inner={tokens: 3} # three",
                                         "tiny=3 # three",
                                         "wait=3s # three"};
  for (const std::string& set : refused) {
    const auto read = read_yaml<Sample>("x.yaml", "text: x\n", std::vector{set});
    EXPECT_EQ(read.issues.size(), 1U) << set;
  }
  EXPECT_EQ(value("text: x # a comment of a file\n").text, "x");
}

TEST(Yaml, RejectsAliasesAnchorsAndTags) {
  EXPECT_EQ(issues("rows: [&a {tokens: 1}, *a]\ntext: !!binary aGk=\n"),
            "x.yaml:1: anchors (&name) are not supported\n"
            "x.yaml:1: aliases (*name) are not supported\n"
            "x.yaml:2: tags (`tag:yaml.org,2002:binary`) are not supported\n");
}

TEST(Yaml, DepthAndSizeAreLimited) {
  for (const std::size_t depth : {40U, 400U, 100000U}) {
    const std::string found = issues("rows: " + std::string(depth, '[') + std::string(depth, ']'));
    EXPECT_EQ(found.find("x.yaml:1: nested deeper than 32 levels\n"), 0U) << depth;
  }
  EXPECT_EQ(issues(std::string(2 << 20, ' ')),
            "x.yaml: expected at most 1048576 bytes, found 2097152\n");
}

TEST(Yaml, NamesThePlaceOfInvalidYaml) {
  EXPECT_EQ(issues("text: a\nwords: [a\n"),
            "x.yaml:3: not YAML: end of sequence flow not found; check quotes, brackets and "
            "indentation\n");
  EXPECT_EQ(issues("text: a\n\tflag: true\n"),
            "x.yaml:2: found a tab in the indentation; YAML expects spaces\n");
  EXPECT_EQ(issues("text: a\n\x80"), "x.yaml:2: expected UTF-8 text, found byte 0x80\n");
  EXPECT_EQ(issues(std::string("a\0b", 3)), "x.yaml:1: expected UTF-8 text, found byte 0x00\n");
  EXPECT_EQ(issues("- a\n"), "x.yaml:1: expected keys and values such as `name: first-run`\n");
  EXPECT_EQ(issues("# nothing\n"),
            "x.yaml: expected keys and values such as `name: first-run`, found an empty file\n");
  EXPECT_EQ(issues("text: a\n---\ntext: b\n"),
            "x.yaml:3: expected one YAML document, found a second\n");
  EXPECT_EQ(issues("[a]: b\n"), "x.yaml:1: expected a plain word as the key\n");
}

TEST(Yaml, PlaceIsThatOfTheKeyOrItsSection) {
  const auto read =
      read_yaml<Sample>("x.yaml", "inner:\n  tokens: 3\n", std::vector<std::string>{"tiny=3"});
  EXPECT_EQ(read.document.location(read.place_of("inner.tokens")), "x.yaml:2");
  EXPECT_EQ(read.document.location(read.place_of("inner.shape")), "x.yaml:1");
  EXPECT_EQ(read.document.location(read.place_of("words[3]")), "x.yaml");
  EXPECT_EQ(read.document.location(read.place_of("tiny")), "--set tiny=3");
}

TEST(Yaml, RandomDamageNeverCrashes) {
  Random rng(2, "yaml");
  for (int i = 0; i < 1000; ++i) {
    std::string text = to_yaml(random_sample(rng));
    for (int flips = 0; flips < 4; ++flips)
      text[rng.below(text.size())] = "[]{}:-,\"'\n #&*!|>%@`\t"[rng.below(21)];
    (void)read_yaml<Sample>("x.yaml", text);
  }
}

}  // namespace
}  // namespace temper
