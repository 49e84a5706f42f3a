#include "core/markdown.hpp"

#include "tests/core/sample_types.hpp"

#include <gtest/gtest.h>

namespace temper {
namespace {

struct Outer {
  Duration wait = std::chrono::milliseconds(250);
  std::vector<test::Small> rows;
  test::Small inner;
};
void describe(auto& v, Outer& o) {
  v.field(1, "wait", o.wait, {.doc = "A pause | break.", .min = Duration(1), .example = "2s"});
  v.field(2, "rows", o.rows);
  v.field(5, "inner", o.inner, {.doc = "Within."});
}

TEST(Markdown, AStructIsATableWithASectionPerInnerStruct) {
  EXPECT_EQ(to_markdown<Outer>(),
            "| key | type | default | bounds | meaning |\n"
            "|---|---|---|---|---|\n"
            "| `wait` | duration | `250ms` | from 1ns | A pause \\| break. Example: `2s`. |\n"
            "| `rows` | list of section | `[]` |  |  |\n"
            "| `inner` | section |  |  | Within. |\n"
            "\n## `rows[]`\n\n"
            "| key | type | default | bounds | meaning |\n"
            "|---|---|---|---|---|\n"
            "| `tokens` | tokens | `1` | 0 to 100 | How many. |\n"
            "| `shape` | `round`, `square` | `round` |  | Which. |\n"
            "\n## `inner`\n\n"
            "| key | type | default | bounds | meaning |\n"
            "|---|---|---|---|---|\n"
            "| `tokens` | tokens | `1` | 0 to 100 | How many. |\n"
            "| `shape` | `round`, `square` | `round` |  | Which. |\n");
}

struct Lists {
  std::vector<std::string> names{"left", "right"};
  std::vector<std::string> none;
};
void describe(auto& v, Lists& l) {
  v.field(1, "names", l.names, {.doc = "Sides."});
  v.field(2, "none", l.none);
}

TEST(Markdown, TheDefaultOfAListHasItsValues) {
  EXPECT_EQ(to_markdown<Lists>(),
            "| key | type | default | bounds | meaning |\n"
            "|---|---|---|---|---|\n"
            "| `names` | list of text | `[left, right]` |  | Sides. |\n"
            "| `none` | list of text | `[]` |  |  |\n");
}

TEST(Markdown, MessagesShowFieldNumbers) {
  EXPECT_EQ(to_markdown<test::Small>({}, {.ids = true, .defaults = false}),
            "| # | field | type | meaning |\n"
            "|---|---|---|---|\n"
            "| 1 | `tokens` | tokens | How many. |\n"
            "| 2 | `shape` | `round`, `square` | Which. |\n");
}

TEST(Markdown, EveryKindOfFieldHasAName) {
  const std::string text = to_markdown<test::Everything>();
  for (const char* type : {"boolean",
                           "integer",
                           "number",
                           "text",
                           "size",
                           "bandwidth",
                           "duration",
                           "id",
                           "int32 blob",
                           "float32 blob",
                           "byte blob",
                           "list of text",
                           "map of text to section",
                           "integer, or null"}) {
    EXPECT_NE(text.find(std::string("| ") + type + " |"), std::string::npos) << type;
  }
}

}  // namespace
}  // namespace temper
