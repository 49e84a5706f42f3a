// A value on the heap, for a large type in a struct that many files know and few look into.
#pragma once

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

namespace temper {

/// Owns a T and copies it, as std::indirect of C++26 does; described as if it were the T itself.
/// Unlike there, T may be incomplete where its owner is created, copied and destroyed: one that was
/// created without a value holds a T{}, made when it is first changed.
template <class T>
class Indirect {
 public:
  Indirect() = default;
  template <class U>  // clang-format off
  requires std::same_as<std::remove_cvref_t<U>, T>
  Indirect(U&& value)  // NOLINT(google-explicit-*,bugprone-forwarding-*): as if it were the T
      : value_(new T(std::forward<U>(value)), &destroy), copy_(&copy) {}  // clang-format on
  Indirect(const Indirect& other) : value_(other.copied()), copy_(other.copy_) {}
  Indirect(Indirect&&) noexcept = default;
  Indirect& operator=(const Indirect& other) {
    if (this != &other) {
      value_ = other.copied();
      copy_ = other.copy_;
    }
    return *this;
  }
  Indirect& operator=(Indirect&&) noexcept = default;
  ~Indirect() = default;

  const T& operator*() const {
    static const T kDefault{};
    return value_ == nullptr ? kDefault : *value_;
  }
  T& operator*() {
    if (value_ == nullptr)
      *this = Indirect(T{});
    return *value_;
  }
  const T* operator->() const { return &**this; }
  T* operator->() { return &**this; }

 private:
  using Pointer = std::unique_ptr<T, void (*)(T*)>;

  static void destroy(T* value) { delete value; }
  static Pointer copy(const T& value) { return {new T(value), &destroy}; }
  static Pointer none() { return {nullptr, nullptr}; }
  Pointer copied() const { return value_ == nullptr ? none() : copy_(*value_); }

  Pointer value_ = none();
  Pointer (*copy_)(const T&) = nullptr;
};

template <class V, class T>
void describe(V& v, Indirect<T>& indirect) {
  describe(v, *indirect);
}

}  // namespace temper
