// Result<T>: a value or an Error, with the interface of std::expected (which C++20 lacks). Expected
// failures are returned as Result, bugs abort (core/check.hpp), and our code never throws.
#pragma once

#include "core/check.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

namespace temper {

enum class ErrorCode {
  InvalidInput,  ///< Input from a user or a peer is invalid.
  NotFound,      ///< A file, key or name does not exist.
  Corrupt,       ///< Stored or received data fails its own checks.
  Io,            ///< The operating system refused a read, write, or socket call.
  Timeout,       ///< A deadline passed; the context names what was awaited.
  Unavailable,   ///< A peer or resource is gone or not ready yet.
  OutOfMemory,   ///< A byte budget would be exceeded.
  Unsupported,   ///< Valid, but this build or mode cannot do it.
  NotFinite,     ///< A loss, gradient, weight or logit is infinite or NaN.
  Internal,      ///< An unexpected failure of a library.
};

/// Explains the code in one sentence.
std::string_view sentence(ErrorCode code);

/// A failure: its kind, and a context that callers extend from the left ("loading x.yaml: line 12:
/// ...").
struct [[nodiscard]] Error {
  ErrorCode code = ErrorCode::Internal;
  std::string context;

  /// Prepends the caller's context: `outer: context`.
  Error within(std::string_view outer) && {
    context.insert(0, std::string(outer) + ": ");
    return std::move(*this);
  }
  bool operator==(const Error&) const = default;
};

inline Error invalid_input(std::string context) {
  return {ErrorCode::InvalidInput, std::move(context)};
}
inline Error corrupt(std::string context) {
  return {ErrorCode::Corrupt, std::move(context)};
}
/// An Io error: `what`, then the system's message for `errno_value`.
Error io_error(std::string_view what, int errno_value);

template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = T;

  // Implicit on purpose, so that `return value;` and `return error;` work.
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  /// Requires: has_value().
  T& value() & { return checked(); }
  const T& value() const& { return const_cast<Result*>(this)->checked(); }
  T&& value() && { return std::move(checked()); }
  T& operator*() & { return checked(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(checked()); }
  T* operator->() { return &checked(); }
  const T* operator->() const { return &value(); }

  /// Requires: !has_value().
  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

  T value_or(T fallback) && { return has_value() ? std::move(checked()) : std::move(fallback); }

  template <class F>
  auto and_then(F f) && -> std::invoke_result_t<F, T&&> {
    if (has_value())
      return f(std::move(checked()));
    return std::get<1>(std::move(state_));
  }
  template <class F>
  auto transform(F f) && -> Result<std::invoke_result_t<F, T&&>> {
    if (has_value())
      return f(std::move(checked()));
    return std::get<1>(std::move(state_));
  }

 private:
  T& checked() {
    if (!has_value())
      check_failed(__FILE__, __LINE__, "has_value()", error().context.c_str());
    return std::get<0>(state_);
  }
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;

  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT: see Result<T>

  bool has_value() const { return !error_.has_value(); }
  explicit operator bool() const { return has_value(); }
  const Error& error() const& { return error_.value(); }
  Error&& error() && { return std::move(error_).value(); }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace temper

#define TEMPER_CONCAT_(a, b) a##b
#define TEMPER_CONCAT(a, b) TEMPER_CONCAT_(a, b)
/// `TEMPER_TRY(auto x, compute());` binds the value, or returns the error from the enclosing
/// function.
#define TEMPER_TRY(declaration, ...) \
  TEMPER_TRY_(TEMPER_CONCAT(temper_try_, __LINE__), declaration, __VA_ARGS__)
#define TEMPER_TRY_(tmp, declaration, ...) \
  auto tmp = (__VA_ARGS__);                \
  if (!tmp)                                \
    return std::move(tmp).error();         \
  declaration = *std::move(tmp)
/// The same for a Status.
#define TEMPER_TRY_STATUS(...)                                      \
  do {                                                              \
    if (auto temper_try_status = (__VA_ARGS__); !temper_try_status) \
      return std::move(temper_try_status).error();                  \
  } while (false)
