#include "actors/task/internal/chat_template.hpp"

#include "actors/guard/executable.hpp"
#include "tests/support/temporary_folder.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <fstream>

namespace temper::actors {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using Texts = std::vector<Result<std::string>>;

const std::vector<std::string> kTwoChats{R"([{"role": "user", "content": "a"}])",
                                         R"([{"role": "user", "content": "b"}])"};

/// Renders two chats with a program in the shell. `each`: time limit for one text.
Result<Texts> rendered_by(const std::string& script, Duration each = std::chrono::seconds(60)) {
  return chat_renderer({{"sh", "-c", script}, milliseconds(2000), each})(kTwoChats);
}

/// Errors begin with "error: ".
std::vector<std::string> flat(const Texts& texts) {
  std::vector<std::string> all;
  for (const Result<std::string>& text : texts)
    all.push_back(text ? *text : "error: " + text.error().context);
  return all;
}

using Strings = std::vector<std::string>;

std::string error_of(const Result<Texts>& texts) {
  EXPECT_FALSE(texts);
  return texts ? std::string() : texts.error().context;
}

constexpr const char* kReady = R"(echo '{"ready": true}';)";

TEST(ChatProgram, GetsEachChatAndGivesItsText) {
  const auto texts = rendered_by(std::string(kReady) + R"(
    while read -r line; do echo "{\"text\": $(echo "$line" | sed 's/.*content": //; s/}.*//')}"; done)");
  ASSERT_TRUE(texts) << texts.error().context;
  EXPECT_EQ(flat(*texts), (Strings{"a", "b"}));
}

TEST(ChatProgram, ThatRejectsAChatGivesTheOthers) {
  const auto texts =
      rendered_by(std::string(kReady) +
                  R"(read -r l; echo '{"error": "no"}'; read -r l; echo '{"text": "b"}'; sleep 9)");
  ASSERT_TRUE(texts) << texts.error().context;
  EXPECT_EQ(flat(*texts), (Strings{"error: no", "b"}));
}

TEST(ChatProgram, ThatCannotBeginIsAnErrorOfTheWhole) {
  EXPECT_EQ(error_of(rendered_by(R"(echo '{"error": "no template"}'; exit 1)")), "no template");
  EXPECT_EQ(error_of(rendered_by("echo oops >&2; exit 3")), "it ended: exit code 3; stderr: oops");
  EXPECT_EQ(error_of(rendered_by("sleep 9")), "it was not ready within 2s");
  EXPECT_EQ(error_of(rendered_by("echo hello; sleep 9")), "it wrote `hello`");
  EXPECT_EQ(error_of(rendered_by("echo '{\"text\": \"early\"}'; sleep 9")),
            "it wrote `{\"text\": \"early\"}`");
}

TEST(ChatProgram, ThatStopsKeepsTheTextsBefore) {
  const std::string first = std::string(kReady) + R"(echo '{"text": "a"}';)";
  const std::pair<std::string, std::string> cases[] = {
      {"exit 4", "rendering stopped: it ended: exit code 4"},
      {"exec >&-; sleep 9", "rendering stopped: it closed its output"},
      {"echo '{\"text\": 5}'; sleep 9", "rendering stopped: it wrote `{\"text\": 5}`"},
      {"echo '[]'; sleep 9", "rendering stopped: it wrote `[]`"}};
  for (const auto& [then, why] : cases) {
    const auto texts = rendered_by(first + then);
    ASSERT_TRUE(texts) << texts.error().context;
    EXPECT_EQ(flat(*texts), (Strings{"a", "error: " + why}));
  }
  const auto late = rendered_by(first + "exec sleep 9", milliseconds(300));
  ASSERT_TRUE(late) << late.error().context;
  EXPECT_EQ(flat(*late),
            (Strings{"a",
                     "error: rendering stopped: no text within 300ms; a loop of the template may "
                     "not end"}));
  const auto endless = rendered_by(first + "exec tr '\\0' x </dev/zero");
  ASSERT_TRUE(endless) << endless.error().context;
  ASSERT_EQ(endless->size(), 2U);
  EXPECT_NE(endless->at(1).error().context.find("it wrote a line of more than"), std::string::npos);
}

TEST(ChatProgram, ThatWritesMoreTextsThanChatsIsAnError) {
  EXPECT_EQ(error_of(rendered_by(
                std::string("printf '") +
                R"({"ready": true}\n{"text": "a"}\n{"text": "b"}\n{"text": "c"}\n'; sleep 9)")),
            "it wrote `{\"text\": \"c\"}?` after the last prompt");
}

TEST(ChatProgram, ThatIsMissingSaysWhatToInstall) {
  const auto texts = chat_renderer({{"no-such-python"}, {}, {}})(kTwoChats);
  EXPECT_EQ(error_of(texts),
            "no executable `no-such-python` in PATH; rendering a chat template needs python3 and "
            "python3-jinja2; install them, or apply the template before the run with `python -m "
            "temper.data`");
}

// --- The embedded program

class ChatTemplate : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string command = default_python() + " -c 'import jinja2' 2>/dev/null";
    if (std::system(command.c_str()) != 0)  // NOLINT(concurrency-mt-unsafe)
      GTEST_SKIP() << default_python() << " has no jinja2 (Debian: python3-jinja2)";
  }

  void write(const char* name, const std::string& text) const {
    std::ofstream(folder_.path() / name) << text;
  }

  Result<Texts> render(const std::vector<std::string>& chats) const {
    ChatProgram program = chat_program(folder_.path());
    program.each = milliseconds(1500);
    return chat_renderer(program)(chats);
  }

  /// The text or error of one chat.
  std::string render_one(const std::string& jinja,
                         const std::string& chat = R"([{"role": "user", "content": "hi"}])") const {
    write("chat_template.jinja", jinja);
    const auto texts = render({chat});
    if (!texts)
      return "nothing: " + texts.error().context;
    EXPECT_EQ(texts->size(), 1U);
    return flat(*texts).at(0);
  }

  /// The texts or errors of several templates, by one start of the program.
  Strings render_each(const std::vector<std::pair<std::string, std::string>>& cases) const {
    std::string jinja;
    std::vector<std::string> chats;
    for (std::size_t i = 0; i < cases.size(); ++i) {
      jinja +=
          fmt::format("{{% if messages[0].content == '{}' %}}{}{{% endif %}}", i, cases[i].first);
      chats.push_back(fmt::format(R"([{{"role": "user", "content": "{}"}}])", i));
    }
    write("chat_template.jinja", jinja);
    const auto texts = render(chats);
    if (!texts)
      return Strings(cases.size(), "nothing: " + texts.error().context);
    return flat(*texts);
  }

  const test::TemporaryFolder folder_;
};

TEST_F(ChatTemplate, RendersWithTheSpecialTokensOfTheFolder) {
  write("tokenizer_config.json",
        json{{"bos_token", {{"content", "<s>"}, {"lstrip", false}}},
             {"eos_token", "</s>"},
             {"pad_token", nullptr},
             {"chat_template",
              "{{ bos_token }}{% for message in messages %}\n"
              "    {% if message.role == 'user' %}\n"
              "[{{ message['content'] | trim }}]{{ eos_token }}{{ pad_token }}\n"
              "    {% endif %}\n"
              "{% endfor %}{% if add_generation_prompt %}>{% endif %}"}}
            .dump());
  const auto texts = render(
      {R"([{"role": "user", "content": " hü "}])", R"([{"role": "system", "content": "x"}])"});
  ASSERT_TRUE(texts) << texts.error().context;
  EXPECT_EQ(flat(*texts), (Strings{"<s>[hü]</s>\n>", "<s>>"}));
}

TEST_F(ChatTemplate, UsesTheTemplateThatIsNamedDefault) {
  write(
      "tokenizer_config.json",
      R"({"chat_template": [{"name": "tool_use", "template": "t"}, {"name": "default", "template": "d"}]})");
  EXPECT_EQ(flat(*render({kTwoChats[0]})), Strings{"d"});
  write("tokenizer_config.json", R"({"chat_template": [{"name": "rag", "template": "t"}]})");
  EXPECT_NE(error_of(render(kTwoChats)).find("no template is named default; found rag"),
            std::string::npos);
}

TEST_F(ChatTemplate, HasTheFunctionsOfTransformers) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{{ messages | tojson }}", R"([{"role": "user", "content": "0"}])"},
      {"{{ {'b': '<é>'} | tojson(indent=1) }}", "{\n \"b\": \"<é>\"\n}"},
      {"{% for m in [1, 2, 3] %}{% if m == 2 %}{% break %}{% endif %}{{ m }}{% endfor %}", "1"},
      {"a{% generation %}{{ messages[0].role }}{% endgeneration %}b", "auserb"},
      {"{{ tools is defined }} {{ tools is none }} {{ documents is none }}", "True True True"},
      {"{% set ns = namespace(n=1) %}{% set ns.n = 2 %}{{ ns.n }}", "2"},
      {"{{ messages[0].role.split('s')[0] }}", "u"},
      {"{{ strftime_now is defined }}", "False"}};
  const Strings texts = render_each(cases);
  for (std::size_t i = 0; i < cases.size(); ++i)
    EXPECT_EQ(texts.at(i), cases[i].second) << cases[i].first;
}

TEST_F(ChatTemplate, JoinsPartsOfText) {
  EXPECT_EQ(render_one("{{ messages[0].content }}",
                       R"([{"role": "user", "content": [{"type": "text", "text": "a"}, "b"]}])"),
            "ab");
}

TEST_F(ChatTemplate, NamesTheLineOfASyntaxError) {
  const std::string file = (folder_.path() / "chat_template.jinja").string();
  const std::string error = render_one("a\n{% if %}");
  EXPECT_TRUE(error.starts_with("nothing: " + file + ": line 2 of the template: ")) << error;
}

TEST_F(ChatTemplate, RejectsWhatTheTemplateMayNotDo) {
  const std::string failed = "error: the template failed with ";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{{ raise_exception('no system message') }}",
       "error: the template raised: no system message"},
      {"{% include 'other' %}",
       "error: the template includes other, but a chat template is a single file"},
      {"{{ ''.__class__.__mro__ }}", failed},
      {"{{ raise_exception.__globals__['sys'].version }}", failed},
      {"{{ cycler.__init__.__globals__.os.popen('id').read() }}", failed},
      {"{{ messages.append(1) }}", failed},
      {"{{ (messages | map('attr', '__class__') | list)[0].x }}", failed},
      {"{{ strftime_now('%Y') }}", "error: the template asks for the current date (strftime_now)"},
      {"{{ messages[0].content + 1 }}", failed + "TypeError: "},
      {"{{ '\\ud800' }}", "error: the template rendered a text that is not Unicode"},
      {"{{ 'x' * 5000000 }}", "error: the template rendered 5000000 bytes, more than 4194304"},
      {"{% for i in range(1000000) %}x{% endfor %}", failed + "OverflowError: "},
      {"{{ 'x' * 9000000000 }}", failed + "MemoryError"},
      {"fine", "fine"}};
  const Strings texts = render_each(cases);
  for (std::size_t i = 0; i < cases.size(); ++i)
    EXPECT_TRUE(texts.at(i).starts_with(cases[i].second)) << cases[i].first << ": " << texts[i];
}

TEST_F(ChatTemplate, RejectsContentsThatAreNoText) {
  write("chat_template.jinja", "x");
  const auto texts = render({R"([{"role": "user"}])",
                             R"([{"role": "user", "content": null}])",
                             R"([{"role": "user", "content": [{"type": "image"}]}])",
                             R"([{"role": "assistant", "content": null, "tool_calls": [1]}])"});
  ASSERT_TRUE(texts) << texts.error().context;
  const std::string none =
      "error: content of a message: found NoneType, expected a text, or a list of parts such as "
      "{'type': 'text', 'text': ...}";
  EXPECT_EQ(flat(*texts),
            (Strings{none,
                     none,
                     "error: a message has a part of type image: expected only parts of type text",
                     "x"}));
}

TEST_F(ChatTemplate, BoundsTheTime) {
  EXPECT_EQ(
      render_one("{% for a in range(9999) %}{% for b in range(9999) %}{% for c in range(9999) "
                 "%}{% endfor %}{% endfor %}{% endfor %}"),
      "error: rendering stopped: no text within 1500ms; a loop of the template may not end");
}

TEST_F(ChatTemplate, NamesAFolderWithoutATemplate) {
  const std::string why =
      " has no chat template: expected chat_template.jinja, or `chat_template` in "
      "tokenizer_config.json";
  EXPECT_EQ(error_of(render(kTwoChats)), folder_.path().string() + why);
  write("tokenizer_config.json", R"({"chat_template": null})");
  EXPECT_EQ(error_of(render(kTwoChats)), folder_.path().string() + why);
  for (const char* const bad :
       {"[1]", R"({"chat_template": 5})", R"({"chat_template": [5]})", "\xff"}) {
    write("tokenizer_config.json", bad);
    EXPECT_TRUE(error_of(render(kTwoChats))
                    .starts_with((folder_.path() / "tokenizer_config.json").string() + ": "))
        << bad;
  }
}

TEST_F(ChatTemplate, RendersManyChatsInOrder) {
  write("chat_template.jinja", "{{ messages[0].content }}");
  std::vector<std::string> chats;
  Strings expected;
  for (int i = 0; i < 5000; ++i) {
    expected.emplace_back(std::string(200, 'x') + std::to_string(i));
    chats.push_back(json::array({{{"role", "user"}, {"content", expected.back()}}}).dump());
  }
  const auto texts = render(chats);
  ASSERT_TRUE(texts) << texts.error().context;
  EXPECT_EQ(flat(*texts), expected);
}

}  // namespace
}  // namespace temper::actors
