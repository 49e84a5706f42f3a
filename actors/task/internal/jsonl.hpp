// A data set: one JSON object per line, in one of two forms,
//
//   {"prompt": "2+2=", "answer": "4"}
//   {"question": "Two and two?", "answer": "2 + 2 = 4, so #### 4"}      (GSM8K)
//
// In the second form the answer is the text after the last "####", without commas. A row may also
// have `prompt_token_ids`: then the engine gets these, and the verifier gets the prompt, which may
// be text or a list of messages (passed on as JSON). Other fields are passed to the verifier. Blank
// lines are ignored. A hash of the prompt decides whether a problem is held out, so this does not
// depend on the other rows of the file.
//
// With `template: chat`, the prompt of a row without token ids becomes messages: its list of
// messages in `prompt`, else in `messages`, else one message of the user with its text. The chat
// template renders them to the text that the engine and the verifier get; the column `messages` has
// the messages. The hash is that of the prompt before rendering, so a row is held out whichever
// model is trained.
#pragma once

#include "actors/task/internal/chat_template.hpp"
#include "actors/task/prompts.hpp"

#include <string_view>

namespace temper::actors {

/// Longest accepted line, in bytes.
inline constexpr std::size_t kLongestLine = std::size_t{1} << 20;

struct JsonlRow {
  std::size_t line = 0;
  Problem problem;
  std::uint64_t hash = 0;    ///< Of the prompt in the file.
  std::uint8_t teacher = 0;  ///< Index in PromptOptions::teachers.
  std::string chat;          ///< Messages to render, as JSON; empty: the prompt is used as it is.
};

/// Parses the rows of `text`; errors call the file `name`. Error InvalidInput: lists the first
/// twenty lines that are malformed or whose answer violates `rule`, as "name:17: reason", and the
/// number of further ones.
Result<std::vector<JsonlRow>> parse_jsonl(std::string_view name,
                                          std::string_view text,
                                          AnswerRule rule = AnswerRule::Any,
                                          TemplateKind prompt_template = TemplateKind::None);

/// Renders the chats of the rows to their prompts. Errors: lists rows as parse_jsonl() does;
/// kTemplateKey if nothing could be rendered.
Status render_chats(std::string_view name, std::vector<JsonlRow>& rows, const ChatRenderer& render);

/// Errors: as parse_jsonl() and render_chats(); also a file that cannot be read, has no problems,
/// or has no training problems left, unless all are held out (held_out: 1), so that there is none
/// to call problem() with. `source`: name of the source, whose rows must not have a column
/// `source`; empty: none.
Result<std::unique_ptr<PromptSource>> make_jsonl_source(const TaskConfig& task,
                                                        std::uint64_t seed,
                                                        const PromptOptions& options,
                                                        const std::string& source = {});

}  // namespace temper::actors
