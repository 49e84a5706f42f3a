#include "orchestrator/model_comparison/transformers_answer.hpp"

#include "core/files.hpp"
#include "core/json_document.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <cstring>
#include <limits>

namespace temper::orchestrator {
namespace {

using nlohmann::json;

Error invalid_answer(std::string_view field, std::string_view expected, std::string_view found) {
  return {ErrorCode::Internal, fmt::format("{}: expected {}, found {}", field, expected, found)};
}

/// The member, which must exist.
Result<const json*> member_of(const json& object, const char* name) {
  const auto it = object.find(name);
  if (it == object.end())
    return invalid_answer(name, "a value", "none");
  return &*it;
}

Result<std::string> text_member(const json& object, const char* name) {
  TEMPER_TRY(const json* const value, member_of(object, name));
  if (!value->is_string())
    return invalid_answer(name, "a text", value->type_name());
  return value->get<std::string>();
}

/// An array with this many elements.
Status check_count(const json& value, const std::string& field, std::size_t expected) {
  const std::string size = fmt::format("a list of {}", expected);
  if (!value.is_array())
    return invalid_answer(field, size, value.type_name());
  if (value.size() != expected)
    return invalid_answer(field, size, fmt::format("{} elements", value.size()));
  return {};
}

Result<std::vector<std::int32_t>> parse_ids(const json& value, const std::string& field) {
  if (!value.is_array())
    return invalid_answer(field, "a list of token ids", value.type_name());
  std::vector<std::int32_t> ids;
  for (const json& id : value) {
    if (!id.is_number_unsigned() ||
        id.get<std::uint64_t>() > std::numeric_limits<std::int32_t>::max())
      return invalid_answer(field, "token ids >= 0", id.is_number() ? id.dump() : id.type_name());
    ids.push_back(id.get<std::int32_t>());
  }
  return ids;
}

Result<std::vector<RenderedChat>> parse_chats(const json& value, std::size_t expected) {
  TEMPER_TRY_STATUS(check_count(value, "chats", expected));
  std::vector<RenderedChat> chats;
  for (const json& chat : value) {
    if (!chat.is_object())
      return invalid_answer("chats", "objects", chat.type_name());
    RenderedChat& to = chats.emplace_back();
    if (chat.contains("error")) {
      TEMPER_TRY(to.error, text_member(chat, "error"));
      if (to.error.empty())
        return invalid_answer("error", "a reason", "an empty text");
    } else {
      TEMPER_TRY(to.text, text_member(chat, "text"));
    }
  }
  return chats;
}

}  // namespace

Result<TransformersAnswer> parse_transformers_answer(std::string_view text,
                                                     const ComparisonRequest& request,
                                                     std::int32_t vocabulary) {
  const json document = parse_json(text);
  if (!document.is_object())
    return invalid_answer(kAnswerFile, "a JSON object", document.type_name());
  TransformersAnswer answer;
  TEMPER_TRY(answer.transformers, text_member(document, "transformers"));
  TEMPER_TRY(answer.torch, text_member(document, "torch"));
  TEMPER_TRY(answer.architecture, text_member(document, "architecture"));
  TEMPER_TRY(const json* const width, member_of(document, "vocabulary"));
  if (*width != vocabulary)
    return invalid_answer("vocabulary", fmt::format("{}", vocabulary), width->dump());
  TEMPER_TRY(answer.tokenizer_error, text_member(document, "tokenizer_error"));
  if (!answer.tokenizer_error.empty())
    return answer;
  TEMPER_TRY(const json* const tokens, member_of(document, "tokens"));
  TEMPER_TRY_STATUS(check_count(*tokens, "tokens", request.texts.size()));
  for (const json& ids : *tokens) {
    TEMPER_TRY(auto parsed, parse_ids(ids, fmt::format("tokens[{}]", answer.tokens.size())));
    answer.tokens.push_back(std::move(parsed));
  }
  TEMPER_TRY(const json* const chats, member_of(document, "chats"));
  if (!chats->is_null()) {
    TEMPER_TRY(answer.chats, parse_chats(*chats, request.chats.size()));
  }
  return answer;
}

Result<std::vector<float>> read_logits(const std::filesystem::path& file,
                                       const ComparisonRequest& request,
                                       std::int32_t vocabulary) {
  const auto width = static_cast<std::size_t>(vocabulary);
  const std::size_t count = static_cast<std::size_t>(request.positions()) * width;
  const std::string name = file.filename().string();
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(file, error);
  if (error)
    return io_error("cannot read " + file.string(), error.value());
  if (size != count * sizeof(float)) {
    return invalid_answer(
        name,
        fmt::format(
            "{} bytes, {} x {} float32", count * sizeof(float), request.positions(), vocabulary),
        fmt::format("{}", size));
  }
  TEMPER_TRY(const std::string bytes, read_file(file));
  if (bytes.size() != size)
    return invalid_answer(name, fmt::format("{} bytes", size), fmt::format("{}", bytes.size()));
  std::vector<float> logits(count);
  std::memcpy(logits.data(), bytes.data(), bytes.size());
  for (std::size_t i = 0; i < count; ++i) {
    if (!std::isfinite(logits[i])) {
      return invalid_answer(
          name,
          "finite logits",
          fmt::format("{} after token {} for id {}", logits[i], i / width, i % width));
    }
  }
  return logits;
}

}  // namespace temper::orchestrator
