#include "actors/byte_pair/unicode.hpp"

#include "core/check.hpp"

#include <fmt/format.h>
#include <unicode/uchar.h>
#include <unicode/unorm2.h>
#include <unicode/uregex.h>
#include <unicode/ustring.h>
#include <unicode/utf8.h>

#include <algorithm>

namespace temper::actors {
namespace {

constexpr UChar32 kReplacement = 0xfffd;

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<signed char>(c) >= 0; });
}

/// Returns false if the text is not UTF-8 and no replacement is given.
bool to_utf16(std::string_view text, UChar32 replacement, std::u16string& out) {
  out.resize(text.size());  // Each UTF-16 unit needs at least one byte.
  std::int32_t length = 0;
  UErrorCode status = U_ZERO_ERROR;
  u_strFromUTF8WithSub(out.data(),
                       static_cast<std::int32_t>(out.size()),
                       &length,
                       text.data(),
                       static_cast<std::int32_t>(text.size()),
                       replacement,
                       nullptr,
                       &status);
  out.resize(U_SUCCESS(status) ? static_cast<std::size_t>(length) : 0);
  return U_SUCCESS(status);
}

std::string to_utf8(std::u16string_view text) {
  std::string out(text.size() * 3, '\0');  // Each UTF-16 unit needs at most three bytes.
  std::int32_t length = 0;
  UErrorCode status = U_ZERO_ERROR;
  u_strToUTF8WithSub(out.data(),
                     static_cast<std::int32_t>(out.size()),
                     &length,
                     text.data(),
                     static_cast<std::int32_t>(text.size()),
                     kReplacement,
                     nullptr,
                     &status);
  out.resize(static_cast<std::size_t>(length));
  return out;
}

std::u16string utf16_of(std::string_view text) {
  std::u16string out;
  to_utf16(text, kReplacement, out);
  return out;
}

/// The last character of a text; empty if there is none. Requires: valid UTF-8.
std::string_view last_character(std::string_view text) {
  std::size_t length = 0;
  bool continues = true;  // UTF-8's continuation bytes are 10xxxxxx.
  while (continues && length < text.size())
    continues = (static_cast<unsigned char>(text[text.size() - ++length]) & 0xc0) == 0x80;
  return text.substr(text.size() - length);
}

/// True if this is one character with the property White_Space; all of them are one UTF-16 unit.
bool is_white_space(std::string_view character) {
  return !character.empty() && u_isUWhiteSpace(utf16_of(character).front()) != 0;
}

/// ICU's own `\s` is narrower than the property (no U+000B, no U+0085).
std::string in_icu_syntax(std::string_view pattern) {
  std::string out;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '\\' || i + 1 == pattern.size()) {
      out += pattern[i];
      continue;
    }
    const char escaped = pattern[++i];
    if (escaped == 's')
      out += "\\p{White_Space}";
    else if (escaped == 'S')
      out += "\\P{White_Space}";
    else
      out += {'\\', escaped};
  }
  return out;
}

struct CloseRegex {
  void operator()(URegularExpression* regex) const { uregex_close(regex); }
};
using Regex = std::unique_ptr<URegularExpression, CloseRegex>;

}  // namespace

Status check_utf8(std::string_view text) {
  std::u16string ignored;
  if (is_ascii(text) || to_utf16(text, U_SENTINEL, ignored))
    return {};
  return invalid_input("the text is not valid UTF-8");
}

std::string to_valid_utf8(std::string_view bytes) {
  return is_ascii(bytes) ? std::string(bytes) : to_utf8(utf16_of(bytes));
}

std::string compose(std::string_view text) {
  if (is_ascii(text))
    return std::string(text);
  const std::u16string from = utf16_of(text);
  UErrorCode status = U_ZERO_ERROR;
  const UNormalizer2* const nfc = unorm2_getNFCInstance(&status);
  TEMPER_CHECK(U_SUCCESS(status), "ICU has no normal form C");
  std::u16string to(from.size() * 3 + 1, u'\0');  // The composed text is never longer than that.
  const std::int32_t length = unorm2_normalize(nfc,
                                               from.data(),
                                               static_cast<std::int32_t>(from.size()),
                                               to.data(),
                                               static_cast<std::int32_t>(to.size()),
                                               &status);
  TEMPER_CHECK(U_SUCCESS(status), "ICU cannot compose the text");
  to.resize(static_cast<std::size_t>(length));
  return to_utf8(to);
}

std::string_view first_character(std::string_view text) {
  std::int32_t end = 0;
  if (!text.empty())
    U8_FWD_1(text.data(), end, static_cast<std::int32_t>(text.size()));
  return text.substr(0, static_cast<std::size_t>(end));
}

std::size_t leading_space(std::string_view text) {
  std::string_view rest = text;
  while (is_white_space(first_character(rest)))
    rest.remove_prefix(first_character(rest).size());
  return text.size() - rest.size();
}

std::size_t trailing_space(std::string_view text) {
  std::string_view rest = text;
  while (is_white_space(last_character(rest)))
    rest.remove_suffix(last_character(rest).size());
  return text.size() - rest.size();
}

struct TextPattern::Compiled {
  Regex regex;
};

TextPattern::TextPattern(std::unique_ptr<Compiled> compiled) : compiled_(std::move(compiled)) {}
TextPattern::TextPattern(TextPattern&&) noexcept = default;
TextPattern::~TextPattern() = default;

Result<TextPattern> TextPattern::compile(std::string_view pattern) {
  const std::u16string text = utf16_of(in_icu_syntax(pattern));
  UErrorCode status = U_ZERO_ERROR;
  Regex regex(
      uregex_open(text.data(), static_cast<std::int32_t>(text.size()), 0, nullptr, &status));
  if (U_FAILURE(status))
    return invalid_input(fmt::format(
        "the regular expression \"{}\" does not compile: {}", pattern, u_errorName(status)));
  return TextPattern(std::make_unique<Compiled>(Compiled{std::move(regex)}));
}

Result<std::vector<std::string>> TextPattern::split(std::string_view text, TextCut cut) const {
  const std::u16string units = utf16_of(text);
  UErrorCode status = U_ZERO_ERROR;
  const Regex regex(uregex_clone(compiled_->regex.get(), &status));
  uregex_setText(regex.get(), units.data(), static_cast<std::int32_t>(units.size()), &status);
  std::vector<std::string> pieces;
  std::size_t at = 0;
  const auto end_piece = [&](std::int32_t unit) {
    const auto end = static_cast<std::size_t>(unit);
    if (end > at)
      pieces.push_back(to_utf8(std::u16string_view(units).substr(at, end - at)));
    at = end;
  };
  while (U_SUCCESS(status) && uregex_findNext(regex.get(), &status)) {
    if (cut != TextCut::After)
      end_piece(uregex_start(regex.get(), 0, &status));
    if (cut != TextCut::Before)
      end_piece(uregex_end(regex.get(), 0, &status));
  }
  if (U_FAILURE(status))
    return invalid_input(
        fmt::format("the regular expression failed on a text: {}", u_errorName(status)));
  end_piece(static_cast<std::int32_t>(units.size()));
  return pieces;
}

}  // namespace temper::actors
