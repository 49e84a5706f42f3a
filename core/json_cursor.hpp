// Streaming JSON reader without a document tree, for responses with thousands of numbers. The
// caller states what it expects next and skips what it does not need. Values that are read are
// validated; for skipped values only brackets and quotes are checked.
#pragma once

#include <cstdint>
#include <string_view>

namespace temper {

/// After the first mismatch nothing more is read: good() and whole() then return false.
class JsonCursor {
 public:
  explicit JsonCursor(std::string_view text) : at_(text.data()), end_(at_ + text.size()) {}

  /// Calls `member(key)` for each member of an object. The callback must read or skip the value.
  /// Escapes in keys are not decoded.
  template <class F>
  void object(F&& member) {
    if (!enter('{') || try_close('}'))
      return;
    do {
      const std::string_view key = text();
      if (!enter(':'))
        return;
      member(key);
    } while (has_more('}'));
  }
  /// Calls `element()` for each element of an array. The callback must read or skip it.
  template <class F>
  void array(F&& element) {
    if (!enter('[') || try_close(']'))
      return;
    do {
      element();
    } while (has_more(']'));
  }
  /// The text between the quotes, escapes not decoded; empty on a mismatch.
  std::string_view text();
  /// A number without fraction or exponent; 0 on a mismatch.
  std::int64_t integer();
  /// A finite number; 0 on a mismatch.
  double number();
  void skip();

  /// The first character of the next token, one of {["-0123456789tfn in valid JSON; 0 at the end of
  /// the text.
  char next();
  /// Consumes a null. Returns false if the next value is something else.
  bool null();

  /// True if everything so far matched.
  bool good() const { return good_; }
  /// True if everything matched and the text ends here.
  bool whole();

 private:
  void skip_space() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t'))
      ++at_;
  }
  /// Consumes `c`, or fails.
  bool enter(char c) {
    if (next() != c || !good_)
      return fail();
    ++at_;
    return true;
  }
  bool try_close(char c) {
    if (next() != c)
      return false;
    ++at_;
    return true;
  }
  /// After a member or an element: true if another one follows. Fails unless the next character is
  /// a comma or `close`.
  bool has_more(char close) {
    const char c = good_ ? next() : '\0';
    if (c != ',' && c != close)
      return fail();
    ++at_;
    return c == ',';
  }
  bool fail() {
    good_ = false;
    at_ = end_;
    return false;
  }
  void skip_nested();

  const char* at_;
  const char* const end_;
  bool good_ = true;
};

}  // namespace temper
