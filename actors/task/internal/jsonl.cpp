#include "actors/task/internal/jsonl.hpp"

#include "actors/task/internal/numbers.hpp"
#include "actors/task/internal/problem_columns.hpp"
#include "actors/task/internal/text.hpp"
#include "core/files.hpp"
#include "core/hash.hpp"
#include "core/json_document.hpp"
#include "core/split.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace temper::actors {

namespace {

using nlohmann::json;

constexpr std::size_t kErrorsShown = 20;
constexpr std::string_view kExpectedRows =
    "expected one JSON object per line, such as {\"prompt\": \"1+2=\", \"answer\": \"3\"}";

/// Shortens the parser's message, "[json.exception.parse_error.101] parse error at line 1, column
/// 5: syntax error while parsing value - invalid literal; ...", by the parts that file:line already
/// states.
std::string reason_of(const json::exception& e) {
  std::string_view what = e.what();
  if (const std::size_t at = what.find("column "); at != std::string_view::npos)
    what.remove_prefix(at);
  else if (const std::size_t end = what.find("] "); end != std::string_view::npos)
    what.remove_prefix(end + 2);
  return excerpt(what, 160);
}

Result<json> parse_object(std::string_view line) {
  if (line.size() > kLongestLine)
    return invalid_input(
        fmt::format("expected at most {} bytes per line, found {}", kLongestLine, line.size()));
  if (const auto at = first_invalid_utf8(line))
    return invalid_input(fmt::format("byte {} is not UTF-8", *at + 1));
  try {
    json object = parse_json_or_throw(line);
    if (!object.is_object())
      return invalid_input(fmt::format("expected an object, found {}", object.type_name()));
    return object;
  } catch (const json::exception& e) {
    return invalid_input("not JSON: " + reason_of(e));
  }
}

/// "; found `a`, `b`": the first fields of an object.
std::string fields_of(const json& object) {
  constexpr std::size_t kShown = 5;
  std::string text;
  std::size_t shown = 0;
  for (const auto& [name, value] : object.items()) {
    if (shown++ == kShown)
      return text + ", ...";
    text += fmt::format("{}`{}`", text.empty() ? "; found " : ", ", excerpt(name, 40));
  }
  return text;
}

Result<std::string> text_field(const json& object, const char* name) {
  const auto field = object.find(name);
  if (field == object.end())
    return invalid_input(fmt::format("`{}` is missing{}", name, fields_of(object)));
  if (!field->is_string())
    return invalid_input(fmt::format("`{}`: expected text, found {}", name, field->type_name()));
  return field->get<std::string>();
}

/// Empty if the row has none.
Result<std::vector<TokenId>> token_ids(const json& object) {
  std::vector<TokenId> tokens;
  const auto field = object.find("prompt_token_ids");
  if (field == object.end() || field->is_null())
    return tokens;
  const auto is_token = [](const json& id) {
    return id.is_number_unsigned() && id <= std::numeric_limits<TokenId>::max();
  };
  if (!field->is_array() || field->empty() || !std::ranges::all_of(*field, is_token))
    return invalid_input("`prompt_token_ids`: expected a list of token ids");
  return field->get<std::vector<TokenId>>();
}

/// Validates the messages of a chat. A content may be text, a list of parts, or null if the message
/// has another purpose, such as a tool call.
Status check_messages(const json& messages, const char* name) {
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const json& message = messages[i];
    const auto bad = [&](std::string_view what) {
      return invalid_input(fmt::format("message {} of `{}`: {}", i + 1, name, what));
    };
    if (!message.is_object())
      return bad(fmt::format("expected an object, found {}", message.type_name()));
    const auto role = message.find("role");
    if (role == message.end() || !role->is_string())
      return bad("expected text in `role`");
    const auto content = message.find("content");
    const bool known = content == message.end() || content->is_string() || content->is_null() ||
                       content->is_array();
    if (!known)
      return bad(fmt::format("expected text in `content`, found {}", content->type_name()));
  }
  return {};
}

/// Validates a list of messages in a column.
Status check_chat(const json& found, const char* name) {
  if (!found.is_array())
    return invalid_input(
        fmt::format("`{}`: expected a list of messages, found {}", name, found.type_name()));
  if (found.empty())
    return invalid_input(
        fmt::format("`{}`: expected at least one message, found an empty list", name));
  return check_messages(found, name);
}

/// Text; or, together with token ids, a list of messages, returned as JSON.
Result<std::string> prompt_field(const json& object, const char* name, bool has_tokens) {
  const auto field = object.find(name);
  if (field == object.end() && object.contains("messages")) {
    return invalid_input(
        fmt::format("`{}` is missing; set `task.template: chat` to render `messages` with the "
                    "model's chat template",
                    name));
  }
  if (field == object.end() || !field->is_array())
    return text_field(object, name);
  TEMPER_TRY_STATUS(check_chat(*field, name));
  if (has_tokens)
    return field->dump();
  return invalid_input(
      fmt::format("`{}` is a list of messages without `prompt_token_ids`; set `task.template: "
                  "chat` to render messages with the model's chat template",
                  name));
}

/// The messages that the template renders: the list in `name`, else that in `messages`, else a
/// message with the text in `name`.
Result<json> chat_of(const json& object, const char* name) {
  const auto prompt = object.find(name), column = object.find("messages");
  const bool in_prompt = prompt != object.end() && prompt->is_array();
  const bool in_column =
      !in_prompt && column != object.end() && (column->is_array() || prompt == object.end());
  if (!in_prompt && !in_column) {
    TEMPER_TRY(const std::string text, text_field(object, name));
    return json::array({{{"role", "user"}, {"content", text}}});
  }
  const char* const from = in_prompt ? name : "messages";
  const json& chat = in_prompt ? *prompt : *column;
  TEMPER_TRY_STATUS(check_chat(chat, from));
  if (chat.back()["role"] == "assistant") {
    return invalid_input(
        fmt::format("`{}` ends with a message of the assistant, which the model is to write; "
                    "remove that message",
                    from));
  }
  return chat;
}

/// Sets the chat of a row, and its prompt before rendering; replaces the column `messages`.
Status read_chat(json& object, const char* name, JsonlRow& row) {
  TEMPER_TRY(json chat, chat_of(object, name));
  row.chat = chat.dump();
  const auto prompt = object.find(name);
  const bool has_text = prompt != object.end() && !prompt->is_array();
  if (has_text) {
    TEMPER_TRY(row.problem.prompt, text_field(object, name));
  } else {
    row.problem.prompt = row.chat;
  }
  object["messages"] = std::move(chat);
  return {};
}

/// The text after the last "####", without commas.
Result<std::string> final_answer(std::string_view text) {
  constexpr std::string_view kMark = "####";
  const std::size_t at = text.rfind(kMark);
  if (at == std::string_view::npos) {
    return invalid_input(
        "`answer` has no `####` before its result; if it is the result itself, rename "
        "`question` to `prompt`");
  }
  std::string answer(trimmed(text.substr(at + kMark.size())));
  std::erase(answer, ',');
  if (answer.empty())
    return invalid_input("`answer`: expected a result after `####`, found none");
  return answer;
}

/// The other columns of the row, for the verifier; empty if there are none.
std::string other_columns(json row, std::initializer_list<const char*> read) {
  for (const char* const name : read)
    row.erase(name);
  return row.empty() ? "" : row.dump();
}

/// Checks that the verifier can compare responses with the answer.
Status check_answer(const std::string& answer, AnswerRule rule) {
  if (rule != AnswerRule::Any && trimmed(answer).empty())
    return invalid_input("`answer` is empty, but the verifier compares responses with it");
  if (rule == AnswerRule::Number && !final_number(answer)) {
    return invalid_input(fmt::format(
        "`answer` \"{}\" has no number, but `verifier.kind: numeric` needs one", excerpt(answer)));
  }
  return {};
}

Result<JsonlRow> parse_line(std::string_view line, AnswerRule rule, TemplateKind prompt_template) {
  TEMPER_TRY(json object, parse_object(line));
  const bool gsm = !object.contains("prompt") && object.contains("question");
  const char* const prompt = gsm ? "question" : "prompt";
  JsonlRow row;
  Problem& problem = row.problem;
  TEMPER_TRY(problem.tokens, token_ids(object));
  if (prompt_template == TemplateKind::Chat && problem.tokens.empty()) {
    TEMPER_TRY_STATUS(read_chat(object, prompt, row));
  } else {
    TEMPER_TRY(problem.prompt, prompt_field(object, prompt, !problem.tokens.empty()));
  }
  TEMPER_TRY(problem.answer, text_field(object, "answer"));
  if (trimmed(problem.prompt).empty())
    return invalid_input(fmt::format("`{}` is empty", prompt));
  if (gsm) {
    TEMPER_TRY(problem.answer, final_answer(problem.answer));
  }
  TEMPER_TRY_STATUS(check_answer(problem.answer, rule));
  problem.columns = other_columns(std::move(object), {prompt, "answer", "prompt_token_ids"});
  row.hash = hash64(problem.prompt);
  return row;
}

bool is_held_out(const JsonlRow& row, double share) {
  // 53 bits of the hash as a number in [0, 1).
  return static_cast<double>(row.hash >> 11) * 0x1.0p-53 < share;
}

/// Reasons why lines of a file are invalid: the first ones, and the number of the others.
class LineErrors {
 public:
  explicit LineErrors(std::string_view name) : name_(name) {}
  void add(std::size_t line, std::string_view why) {
    if (++count_ <= kErrorsShown)
      text_ += fmt::format("{}{}:{}: {}", count_ > 1 ? "\n" : "", name_, line, why);
  }
  Status status() && {
    if (count_ == 0)
      return {};
    if (count_ > kErrorsShown)
      text_ += fmt::format("\n{}: ... and {} more invalid lines", name_, count_ - kErrorsShown);
    return invalid_input(std::move(text_));
  }

 private:
  const std::string_view name_;
  std::string text_;
  std::size_t count_ = 0;
};

/// Gives the problems of all rows their source.
Status name_source(std::string_view name, std::vector<JsonlRow>& rows, const std::string& source) {
  LineErrors errors(name);
  for (JsonlRow& row : rows) {
    if (!set_source(row.problem, source)) {
      errors.add(row.line,
                 fmt::format("the column `{}` is the name of the source in task.sources; rename "
                             "that of the file",
                             kSourceColumn));
    }
  }
  return std::move(errors).status();
}

/// Reads the teacher of each row.
Status read_teachers(const TaskConfig& task,
                     const std::vector<std::string>& teachers,
                     std::vector<JsonlRow>& rows) {
  LineErrors errors(task.path);
  for (JsonlRow& row : rows) {
    if (const auto teacher = teacher_in(row.problem, task.teacher_column, teachers))
      row.teacher = *teacher;
    else
      errors.add(row.line, teacher.error().context);
  }
  return std::move(errors).status();
}

class JsonlSource final : public PromptSource {
 public:
  JsonlSource(std::vector<JsonlRow> rows,
              const TaskConfig& task,
              std::uint64_t seed,
              std::string source)
      : PromptSource(task, seed), source_(std::move(source)) {
    for (JsonlRow& row : rows) {
      const bool trains = !is_held_out(row, task.held_out);
      if (trains && !task.teacher_column.empty())
        teachers_.push_back(row.teacher);
      (trains ? train_ : held_out_).push_back(std::move(row.problem));
    }
  }

  std::vector<ProblemSet> sets() const override {
    return {{source_, "jsonl", train_.size(), held_out_.size()}};
  }
  Problem problem(std::size_t /*set*/, std::uint64_t number) const override {
    return train_[number];
  }
  std::vector<std::uint8_t> teachers(std::size_t /*set*/) const override { return teachers_; }
  Problem held_out(std::uint64_t index) const override {
    TEMPER_CHECK(!held_out_.empty(), "no problem is held out");
    return held_out_[index % held_out_.size()];
  }
  std::uint64_t held_out_size() const override { return held_out_.size(); }
  Result<Tokens> longest_prompt(const Tokenizer& tokenizer) const override;
  bool can_train() const { return !train_.empty(); }

 private:
  const std::string source_;
  std::vector<Problem> train_;
  std::vector<std::uint8_t> teachers_;  ///< Of each training problem, or empty.
  std::vector<Problem> held_out_;
};

/// A token usually covers at least one byte (except if a normal form is longer than its text). So a
/// prompt is encoded only if it has more bytes than the longest prompt so far has tokens, starting
/// with the largest prompts.
Result<Tokens> JsonlSource::longest_prompt(const Tokenizer& tokenizer) const {
  std::vector<const Problem*> problems;
  std::size_t longest = 0;
  for (const auto* part : {&train_, &held_out_}) {
    for (const Problem& problem : *part) {
      longest = std::max(longest, problem.tokens.size());
      if (problem.tokens.empty())
        problems.push_back(&problem);
    }
  }
  std::ranges::sort(
      problems, std::greater<>(), [](const Problem* problem) { return problem->prompt.size(); });
  for (const Problem* const problem : problems) {
    if (problem->prompt.size() <= longest)
      break;
    const auto tokens = tokenizer.encode(problem->prompt);
    if (!tokens)
      return Error(tokens.error()).within(fmt::format("prompt \"{}\"", excerpt(problem->prompt)));
    longest = std::max(longest, tokens->size());
  }
  return Tokens(static_cast<std::int64_t>(longest));
}

}  // namespace

Result<std::vector<JsonlRow>> parse_jsonl(std::string_view name,
                                          std::string_view text,
                                          AnswerRule rule,
                                          TemplateKind prompt_template) {
  if (text.empty())
    return invalid_input(fmt::format("{}: the file is empty; {}", name, kExpectedRows));
  std::vector<JsonlRow> rows;
  LineErrors errors(name);
  std::size_t number = 0;
  for (const std::string_view line : lines_of(text)) {
    ++number;
    if (trimmed(line).empty())
      continue;
    Result<JsonlRow> row = parse_line(line, rule, prompt_template);
    if (row) {
      row->line = number;
      rows.push_back(*std::move(row));
    } else {
      errors.add(number, row.error().context);
    }
  }
  TEMPER_TRY_STATUS(std::move(errors).status());
  if (rows.empty())
    return invalid_input(fmt::format("{}: every line is blank; {}", name, kExpectedRows));
  return rows;
}

Status render_chats(std::string_view name,
                    std::vector<JsonlRow>& rows,
                    const ChatRenderer& render) {
  std::vector<std::string> chats;
  std::vector<JsonlRow*> rendered;
  for (JsonlRow& row : rows) {
    if (!row.chat.empty()) {
      chats.push_back(std::move(row.chat));
      rendered.push_back(&row);
      row.chat.clear();
    }
  }
  if (chats.empty())
    return {};
  auto texts = render(chats);
  if (!texts)
    return Error{texts.error().code, std::string(kTemplateKey) + texts.error().context};
  LineErrors errors(name);
  for (std::size_t i = 0; i < std::min(texts->size(), rendered.size()); ++i) {
    Result<std::string>& text = (*texts)[i];
    if (!text)
      errors.add(rendered[i]->line, text.error().context);
    else if (trimmed(*text).empty())
      errors.add(rendered[i]->line, "the chat template rendered an empty prompt");
    else
      rendered[i]->problem.prompt = *std::move(text);
  }
  TEMPER_TRY_STATUS(std::move(errors).status());
  if (texts->size() != rendered.size()) {
    return invalid_input(fmt::format(
        "{}expected {} rendered prompts, found {}", kTemplateKey, rendered.size(), texts->size()));
  }
  return {};
}

Result<std::unique_ptr<PromptSource>> make_jsonl_source(const TaskConfig& task,
                                                        std::uint64_t seed,
                                                        const PromptOptions& options,
                                                        const std::string& source) {
  if (task.path.empty())
    return invalid_input("task.path: expected a file for kind `jsonl`, found none");
  TEMPER_TRY(const std::string text, read_file(task.path));
  TEMPER_TRY(std::vector<JsonlRow> rows,
             parse_jsonl(task.path, text, options.rule, task.prompt_template));
  TEMPER_TRY_STATUS(name_source(task.path, rows, source));
  if (!task.teacher_column.empty() && !options.teachers.empty())
    TEMPER_TRY_STATUS(read_teachers(task, options.teachers, rows));
  if (task.prompt_template == TemplateKind::Chat && options.render) {
    if (options.model.empty())
      return invalid_input(
          fmt::format("{}`chat` needs a model folder in model.path", kTemplateKey));
    TEMPER_TRY_STATUS(render_chats(task.path, rows, chat_renderer(chat_program(options.model))));
  }
  const std::size_t size = rows.size();
  auto made = std::make_unique<JsonlSource>(std::move(rows), task, seed, source);
  if (!made->can_train() && task.held_out < 1)
    return invalid_input(
        fmt::format("{}: all {} problems are held out; lower task.held_out", task.path, size));
  return std::unique_ptr<PromptSource>(std::move(made));
}

}  // namespace temper::actors
