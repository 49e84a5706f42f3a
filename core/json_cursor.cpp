#include "core/json_cursor.hpp"

#include <charconv>
#include <cmath>
#include <cstring>

namespace temper {
namespace {

bool begins_number(char c) {
  return c == '-' || (c >= '0' && c <= '9');
}

}  // namespace

char JsonCursor::next() {
  skip_space();
  return at_ == end_ ? '\0' : *at_;
}

std::string_view JsonCursor::text() {
  if (!enter('"'))
    return {};
  const char* const begin = at_;
  for (const char* from = at_;;) {
    const auto* const quote =
        static_cast<const char*>(std::memchr(from, '"', static_cast<std::size_t>(end_ - from)));
    if (quote == nullptr) {
      fail();
      return {};
    }
    const char* back = quote;  // An odd number of backslashes before the quote escapes it.
    while (back != begin && back[-1] == '\\')
      --back;
    from = quote + 1;
    if ((quote - back) % 2 == 0) {
      at_ = from;
      return {begin, static_cast<std::size_t>(quote - begin)};
    }
  }
}

std::int64_t JsonCursor::integer() {
  std::int64_t value = 0;
  if (!begins_number(next())) {
    fail();
    return 0;
  }
  const auto [rest, error] = std::from_chars(at_, end_, value);
  const bool fraction = rest != end_ && (*rest == '.' || *rest == 'e' || *rest == 'E');
  if (error != std::errc() || fraction) {
    fail();
    return 0;
  }
  at_ = rest;
  return value;
}

double JsonCursor::number() {
  double value = 0;
  if (!begins_number(next())) {
    fail();
    return 0;
  }
  const auto [rest, error] = std::from_chars(at_, end_, value);
  if (error != std::errc() || !std::isfinite(value)) {
    fail();
    return 0;
  }
  at_ = rest;
  return value;
}

bool JsonCursor::null() {
  constexpr std::string_view kNull = "null";
  if (next() != 'n')
    return false;
  if (!std::string_view(at_, static_cast<std::size_t>(end_ - at_)).starts_with(kNull))
    return fail();
  at_ += kNull.size();
  return true;
}

void JsonCursor::skip() {
  switch (next()) {
    case '"':
      text();
      return;
    case '{':
    case '[':
      skip_nested();
      return;
    case 't':
    case 'f':
    case 'n':
      while (at_ != end_ && *at_ >= 'a' && *at_ <= 'z')
        ++at_;
      return;
    default:
      number();
  }
}

void JsonCursor::skip_nested() {
  constexpr int kDeepest = 64;
  std::uint64_t objects = 0;  // One bit per open bracket, the innermost lowest: 1 for a brace.
  int depth = 0;
  while (at_ != end_) {
    switch (*at_) {
      case '"':
        text();
        continue;
      case '{':
      case '[':
        if (++depth > kDeepest) {
          fail();
          return;
        }
        objects = objects << 1U | (*at_ == '{' ? 1U : 0U);
        break;
      case '}':
      case ']':
        if ((objects & 1U) != (*at_ == '}' ? 1U : 0U)) {
          fail();
          return;
        }
        objects >>= 1U;
        if (--depth == 0) {
          ++at_;
          return;
        }
        break;
      default:
        break;
    }
    ++at_;
  }
  fail();
}

bool JsonCursor::whole() {
  return good_ && next() == '\0' && at_ == end_;
}

}  // namespace temper
