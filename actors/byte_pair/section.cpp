#include "actors/byte_pair/section.hpp"

#include "actors/byte_pair/unicode.hpp"
#include "core/json_document.hpp"

#include <fmt/format.h>

namespace temper::actors {

using nlohmann::json;

Section::Section(const json& value, std::string place) : value_(&value), place_(std::move(place)) {}

Section Section::at(std::string_view key) const {
  static const json none;
  const auto found = value_->find(key);
  return {found == value_->end() ? none : *found, fmt::format("{}.{}", place_, key)};
}

bool Section::is_null() const {
  return value_->is_null();
}

std::string Section::type() const {
  const Section type = at("type");
  return type.value_->is_string() ? type.value_->get<std::string>() : "";
}

std::vector<Section> Section::steps(std::string_view list) const {
  if (is_null())
    return {};
  const Section parts = at(list);
  if (type() != "Sequence" || !parts.value_->is_array())
    return {*this};
  std::vector<Section> steps;
  for (const json& step : *parts.value_)
    steps.emplace_back(step, place_);
  return steps;
}

Result<bool> Section::flag(std::string_view key, bool otherwise) const {
  const Section found = at(key);
  if (found.is_null())
    return otherwise;
  if (!found.value_->is_boolean())
    return found.expected("true or false");
  return found.value_->get<bool>();
}

Result<std::string> Section::text(std::string_view key) const {
  const Section found = at(key);
  if (!found.value_->is_string() || *found.value_ == "")
    return found.expected("a text that is not empty");
  return found.value_->get<std::string>();
}

Result<std::string> Section::character(std::string_view key) const {
  const Section found = at(key);
  auto text = found.value_->is_string() ? found.value_->get<std::string>() : "";
  if (text.empty() || first_character(text).size() != text.size())
    return found.expected("one character");
  return text;
}

Result<std::uint64_t> Section::count(std::string_view key) const {
  const Section found = at(key);
  if (!found.value_->is_number_unsigned())
    return found.expected("an integer >= 0");
  return found.value_->get<std::uint64_t>();
}

Error Section::unsupported() const {
  return Error{ErrorCode::Unsupported,
               fmt::format("`{}` is {}, which Temper does not support", place_, value_->dump())};
}

Error Section::expected(std::string_view what) const {
  return Error{ErrorCode::Unsupported,
               fmt::format("`{}`: expected {}, found {}", place_, what, value_->dump())};
}

Result<Replacement> Replacement::parse(const Section& step) {
  const Section pattern = step.at("pattern");
  if (!pattern.at("Regex").is_null())
    return pattern.unsupported();
  Replacement made;
  TEMPER_TRY(made.from, pattern.text("String"));
  const Section content = step.at("content");
  if (!content.value().is_string())
    return content.expected("a text");
  made.to = content.value().get<std::string>();
  return made;
}

std::string Replacement::apply(std::string_view text) const {
  std::string out;
  std::size_t at = 0;
  for (;;) {
    const std::size_t found = text.find(from, at);
    out += text.substr(at, found - at);
    if (found == std::string_view::npos)
      return out;
    out += to;
    at = found + from.size();
  }
}

}  // namespace temper::actors
