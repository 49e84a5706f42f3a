// Builds GGUF files of any content, valid or not.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace temper::test {

class GgufBytes {
 public:
  std::uint32_t version = 3;

  GgufBytes& uint32(std::string_view key, std::uint32_t value) {
    return begin(key, 4).number(value);
  }
  GgufBytes& real(std::string_view key, float value) { return begin(key, 6).number(value); }
  GgufBytes& flag(std::string_view key, bool value) {
    return begin(key, 7).number(static_cast<std::uint8_t>(value));
  }
  GgufBytes& text(std::string_view key, std::string_view value) {
    begin(key, 8);
    append_text(keys_, value);
    return *this;
  }
  GgufBytes& texts(std::string_view key, const std::vector<std::string>& values) {
    begin(key, 9).number(std::uint32_t{8}).number(static_cast<std::uint64_t>(values.size()));
    for (const std::string& value : values)
      append_text(keys_, value);
    return *this;
  }
  GgufBytes& integers(std::string_view key, const std::vector<std::int32_t>& values) {
    begin(key, 9).number(std::uint32_t{5}).number(static_cast<std::uint64_t>(values.size()));
    for (const std::int32_t value : values)
      number(value);
    return *this;
  }
  GgufBytes& reals(std::string_view key, const std::vector<float>& values) {
    begin(key, 9).number(std::uint32_t{6}).number(static_cast<std::uint64_t>(values.size()));
    for (const float value : values)
      number(value);
    return *this;
  }
  /// `sizes`: innermost first.
  GgufBytes& tensor(std::string_view name,
                    const std::vector<std::uint64_t>& sizes,
                    std::uint32_t type,
                    std::string_view bytes) {
    append_text(tensors_, name);
    append(tensors_, static_cast<std::uint32_t>(sizes.size()));
    for (const std::uint64_t size : sizes)
      append(tensors_, size);
    append(tensors_, type);
    append(tensors_, static_cast<std::uint64_t>(data_.size()));
    data_ += bytes;
    data_.resize((data_.size() + 31) / 32 * 32, '\0');
    ++tensor_count_;
    return *this;
  }

  std::string file() const {
    std::string out = "GGUF";
    append(out, version);
    append(out, tensor_count_);
    append(out, key_count_);
    out += keys_ + tensors_;
    out.resize((out.size() + 31) / 32 * 32, '\0');
    return out + data_;
  }

  /// The bytes of numbers, one after the other.
  template <class... Ts>
  static std::string bytes_of(Ts... numbers) {
    std::string out;
    (append(out, numbers), ...);
    return out;
  }

 private:
  template <class T>
  static void append(std::string& to, T value) {
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    to.append(bytes, sizeof value);
  }
  static void append_text(std::string& to, std::string_view text) {
    append(to, static_cast<std::uint64_t>(text.size()));
    to.append(text);
  }
  GgufBytes& begin(std::string_view key, std::uint32_t type) {
    append_text(keys_, key);
    append(keys_, type);
    ++key_count_;
    return *this;
  }
  template <class T>
  GgufBytes& number(T value) {
    append(keys_, value);
    return *this;
  }

  std::string keys_, tensors_, data_;
  std::uint64_t key_count_ = 0, tensor_count_ = 0;
};

}  // namespace temper::test
