// Data sets with `template: chat`; the template itself is a fake.
#include "actors/task/internal/jsonl.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

namespace temper::actors {
namespace {

using namespace std::string_literals;

using Chats = std::span<const std::string>;
using Texts = std::vector<Result<std::string>>;

/// Renders each chat as "<" + its JSON + ">".
Result<Texts> bracketed(Chats chats) {
  Texts texts;
  for (const std::string& chat : chats)
    texts.push_back("<" + chat + ">");
  return texts;
}

Result<std::vector<JsonlRow>> chats_of(std::string_view text,
                                       const ChatRenderer& render = bracketed) {
  TEMPER_TRY(auto rows, parse_jsonl("d", text, AnswerRule::Any, TemplateKind::Chat));
  TEMPER_TRY_STATUS(render_chats("d", rows, render));
  return rows;
}

std::string chat_error(std::string_view text, const ChatRenderer& render = bracketed) {
  const auto rows = chats_of(text, render);
  EXPECT_FALSE(rows) << text;
  return rows ? std::string() : rows.error().context;
}

TEST(JsonlChat, RendersTextsAndMessagesAndKeepsTheMessagesAsAColumn) {
  const std::string chat = R"([{"content":"hi","role":"user"}])";
  const std::string columns = R"({"messages":)" + chat + "}";
  for (const std::string& row : {R"({"prompt": "hi", "answer": "a"})"s,
                                 R"({"prompt": )" + chat + R"(, "answer": "a"})",
                                 R"({"messages": )" + chat + R"(, "answer": "a"})",
                                 R"({"prompt": "hi", "messages": )" + chat + R"(, "answer": "a"})",
                                 R"({"question": "hi", "answer": "#### a"})"s}) {
    const auto rows = chats_of(row);
    ASSERT_TRUE(rows) << row << rows.error().context;
    EXPECT_EQ(rows->at(0).problem, (Problem{"<" + chat + ">", "a", columns})) << row;
  }
}

TEST(JsonlChat, UsesTokenIdsAsTheyAre) {
  const auto rows = chats_of(R"({"prompt": "hi", "prompt_token_ids": [5], "answer": "a"}
{"prompt": [{"role": "user", "content": "hi"}], "prompt_token_ids": [6], "answer": "a"})",
                             [](Chats) -> Result<Texts> { return invalid_input("not asked"); });
  ASSERT_TRUE(rows) << rows.error().context;
  EXPECT_EQ(rows->at(0).problem, (Problem{"hi", "a", "", {5}}));
  EXPECT_EQ(rows->at(1).problem, (Problem{R"([{"content":"hi","role":"user"}])", "a", "", {6}}));
}

TEST(JsonlChat, HoldsOutTheSameRowsAsWithoutATemplate) {
  std::string text;
  for (int i = 0; i < 100; ++i)
    text += fmt::format("{{\"prompt\": \"p{}\", \"answer\": \"{}\"}}\n", i, i);
  const auto plain = parse_jsonl("d", text).value();
  const auto chats = chats_of(text).value();
  for (std::size_t i = 0; i < plain.size(); ++i)
    EXPECT_EQ(plain[i].hash, chats[i].hash);
}

TEST(JsonlChat, NamesTheLineOfMessagesThatAreNone) {
  const std::pair<const char*, const char*> cases[] = {
      {R"("prompt": [])", "`prompt`: expected at least one message, found an empty list"},
      {R"("messages": [])", "`messages`: expected at least one message, found an empty list"},
      {R"("messages": "hi")", "`messages`: expected a list of messages, found string"},
      {R"("prompt": {"role": "user"})", "`prompt`: expected text, found object"},
      {R"("prompt": [7])", "message 1 of `prompt`: expected an object, found number"},
      {R"("prompt": [{"content": "hi"}])", "message 1 of `prompt`: expected text in `role`"},
      {R"("prompt": [{"role": 1, "content": "hi"}])",
       "message 1 of `prompt`: expected text in `role`"},
      {R"("messages": [{"role": "user", "content": 7}])",
       "message 1 of `messages`: expected text in `content`, found number"},
      {R"("prompt": [{"role": "user", "content": "2"}, {"role": "assistant", "content": "3"}])",
       "`prompt` ends with a message of the assistant, which the model is to write; remove that "
       "message"},
      {R"("prompt": " ")", "`prompt` is empty"},
      {R"("level": 3)", "`prompt` is missing; found `answer`, `level`"},
  };
  for (const auto& [prompt, why] : cases) {
    EXPECT_EQ(chat_error(std::string("\n{") + prompt + R"(, "answer": "a"})"),
              std::string("d:2: ") + why);
  }
}

TEST(JsonlChat, NamesTheLinesThatTheTemplateDoesNotAccept) {
  const std::string rows = R"({"prompt": "1", "answer": "a"}

{"prompt": "2", "answer": "a", "prompt_token_ids": [4]}
{"prompt": "3", "answer": "a"}
{"prompt": "4", "answer": "a"})";
  EXPECT_EQ(chat_error(rows,
                       [](Chats) -> Result<Texts> {
                         return Texts{"fine"s, invalid_input("no"), " \n"s};
                       }),
            "d:4: no\nd:5: the chat template rendered an empty prompt");
  EXPECT_EQ(chat_error(rows, [](Chats) -> Result<Texts> { return invalid_input("no jinja2"); }),
            "task.template: no jinja2");
  EXPECT_EQ(chat_error(rows, [](Chats) -> Result<Texts> { return Texts{"fine"s}; }),
            "task.template: expected 3 rendered prompts, found 1");
  EXPECT_EQ(chat_error(rows, [](Chats) -> Result<Texts> { return Texts(4, "fine"s); }),
            "task.template: expected 3 rendered prompts, found 4");
}

}  // namespace
}  // namespace temper::actors
