// JSON read front to back, without a document: whoever reads says what comes next, and skips what
// it does not need. For answers with thousands of numbers, of which json_document.hpp would make a
// tree first. What is read is checked; of what is skipped only the brackets and quotes are.
#pragma once

#include <cstdint>
#include <string_view>

namespace temper {

/// After the first thing that is not as it was asked for, nothing more is read: see whole().
class JsonCursor {
 public:
  explicit JsonCursor(std::string_view text) : at_(text.data()), end_(at_ + text.size()) {}

  /// Calls `member(key)` for each member of an object; it must read or skip the value. Keys are as
  /// they stand in the text: nothing is made of escapes.
  template <class F>
  void object(F&& member) {
    if (!enter('{') || leaves('}'))
      return;
    do {
      const std::string_view key = text();
      if (!enter(':'))
        return;
      member(key);
    } while (goes_on('}'));
  }
  /// Calls `element()` for each element of an array; it must read or skip it.
  template <class F>
  void array(F&& element) {
    if (!enter('[') || leaves(']'))
      return;
    do {
      element();
    } while (goes_on(']'));
  }
  /// Between its quotes, as it stands in the text; empty where there is none.
  std::string_view text();
  /// A number without fraction or exponent; 0 where there is none.
  std::int64_t integer();
  /// A number; 0 where there is none.
  double number();
  void skip();

  /// The first character of what comes next, one of {["-0123456789tfn where it is JSON; 0: nothing.
  char next();
  /// Steps over a null; false: something else comes.
  bool null();

  /// All was as it was asked for, up to here.
  bool good() const { return good_; }
  /// The same, and this is the end.
  bool whole();

 private:
  void skip_space() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t'))
      ++at_;
  }
  /// Steps over this character, which must come.
  bool enter(char c) {
    if (next() != c || !good_)
      return fail();
    ++at_;
    return true;
  }
  bool leaves(char c) {
    if (next() != c)
      return false;
    ++at_;
    return true;
  }
  /// After a member or an element: whether another follows.
  bool goes_on(char close) {
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
