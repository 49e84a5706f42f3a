#include "actors/task/internal/jsonl.hpp"

#include "actors/task/internal/numbers.hpp"
#include "actors/task/internal/text.hpp"
#include "core/files.hpp"
#include "core/hash.hpp"
#include "core/json_document.hpp"
#include "core/random.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
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

Result<std::string> text_field(const json& object, const char* name) {
  const auto field = object.find(name);
  if (field == object.end())
    return invalid_input(fmt::format("`{}` is missing", name));
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

/// Text; or, together with token ids, a list of messages, returned as JSON.
Result<std::string> prompt_field(const json& object, const char* name, bool has_tokens) {
  const auto field = object.find(name);
  if (field == object.end() && object.contains("messages")) {
    return invalid_input(
        fmt::format("`{}` is missing; `python -m temper.data` creates it from `messages` with a "
                    "model's chat template",
                    name));
  }
  if (field == object.end() || !field->is_array())
    return text_field(object, name);
  if (field->empty())
    return invalid_input(
        fmt::format("`{}`: expected at least one message, found an empty list", name));
  TEMPER_TRY_STATUS(check_messages(*field, name));
  if (has_tokens)
    return field->dump();
  return invalid_input(
      fmt::format("`{}` is a list of messages without `prompt_token_ids`; `python -m temper.data` "
                  "applies a model's chat template and adds them",
                  name));
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

Result<Problem> parse_line(std::string_view line, AnswerRule rule) {
  TEMPER_TRY(json object, parse_object(line));
  const bool gsm = !object.contains("prompt") && object.contains("question");
  const char* const prompt = gsm ? "question" : "prompt";
  Problem problem;
  TEMPER_TRY(problem.tokens, token_ids(object));
  TEMPER_TRY(problem.prompt, prompt_field(object, prompt, !problem.tokens.empty()));
  TEMPER_TRY(problem.answer, text_field(object, "answer"));
  if (trimmed(problem.prompt).empty())
    return invalid_input(fmt::format("`{}` is empty", prompt));
  if (gsm) {
    TEMPER_TRY(problem.answer, final_answer(problem.answer));
  }
  TEMPER_TRY_STATUS(check_answer(problem.answer, rule));
  problem.columns = other_columns(std::move(object), {prompt, "answer", "prompt_token_ids"});
  return problem;
}

bool is_held_out(const Problem& problem, double share) {
  // 53 bits of the hash as a number in [0, 1).
  return static_cast<double>(hash64(problem.prompt) >> 11) * 0x1.0p-53 < share;
}

class JsonlSource final : public PromptSource {
 public:
  JsonlSource(std::vector<Problem> problems, double held_out, std::uint64_t seed) : seed_(seed) {
    for (Problem& problem : problems) {
      (is_held_out(problem, held_out) ? held_out_ : train_).push_back(std::move(problem));
    }
  }

  Problem train(std::uint64_t index) const override {
    const std::uint64_t epoch = index / train_.size();
    const std::uint64_t key = hash64("jsonl", seed_ ^ hash64("epoch", epoch));
    return train_[permuted(index % train_.size(), train_.size(), key)];
  }
  Problem held_out(std::uint64_t index) const override {
    TEMPER_CHECK(!held_out_.empty(), "no problem is held out");
    return held_out_[index % held_out_.size()];
  }
  std::uint64_t held_out_size() const override { return held_out_.size(); }
  Result<Tokens> longest_prompt(const Tokenizer& tokenizer) const override;
  bool can_train() const { return !train_.empty(); }

 private:
  const std::uint64_t seed_;
  std::vector<Problem> train_;
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

Result<std::vector<Problem>> parse_jsonl(std::string_view name,
                                         std::string_view text,
                                         AnswerRule rule) {
  if (text.empty())
    return invalid_input(fmt::format("{}: the file is empty; {}", name, kExpectedRows));
  std::vector<Problem> problems;
  std::string errors;
  std::size_t malformed = 0;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (trimmed(line).empty())
      continue;
    Result<Problem> problem = parse_line(line, rule);
    if (problem) {
      problems.push_back(*std::move(problem));
    } else if (++malformed <= kErrorsShown) {
      errors += fmt::format(
          "{}{}:{}: {}", malformed > 1 ? "\n" : "", name, number, problem.error().context);
    }
  }
  if (malformed > kErrorsShown)
    errors += fmt::format("\n{}: ... and {} more invalid lines", name, malformed - kErrorsShown);
  if (malformed > 0)
    return invalid_input(std::move(errors));
  if (problems.empty())
    return invalid_input(fmt::format("{}: every line is blank; {}", name, kExpectedRows));
  return problems;
}

Result<std::unique_ptr<PromptSource>> make_jsonl_source(const TaskConfig& task,
                                                        std::uint64_t seed,
                                                        AnswerRule rule) {
  if (task.path.empty())
    return invalid_input("task.path: expected a file for kind `jsonl`, found none");
  TEMPER_TRY(const std::string text, read_file(task.path));
  TEMPER_TRY(std::vector<Problem> problems, parse_jsonl(task.path, text, rule));
  const std::size_t size = problems.size();
  auto source = std::make_unique<JsonlSource>(std::move(problems), task.held_out, seed);
  if (!source->can_train() && task.held_out < 1)
    return invalid_input(
        fmt::format("{}: all {} problems are held out; lower task.held_out", task.path, size));
  return std::unique_ptr<PromptSource>(std::move(source));
}

}  // namespace temper::actors
