// A part of tokenizer.json with its place in the file, so that each error names the key.
#pragma once

#include "core/result.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace temper::actors {

class Section {
 public:
  /// Borrows the value. `place` is how errors name it, such as "pre_tokenizer".
  Section(const nlohmann::json& value, std::string place);
  /// The part under a key; null if the key is missing.
  Section at(std::string_view key) const;

  const nlohmann::json& value() const { return *value_; }
  bool is_null() const;
  /// The value of `type`; empty if there is none.
  std::string type() const;
  /// The parts in `list` if the type is Sequence, none if the value is null, else this part itself.
  std::vector<Section> steps(std::string_view list) const;

  // Values of keys. Error Unsupported: the value has another type.
  Result<bool> flag(std::string_view key, bool otherwise) const;  ///< `otherwise` if missing.
  Result<std::string> text(std::string_view key) const;           ///< Not empty.
  Result<std::string> character(std::string_view key) const;      ///< One character, in UTF-8.
  Result<std::uint64_t> count(std::string_view key) const;

  /// Temper supports this kind of part in no file, or not with this value.
  Error unsupported() const;
  Error expected(std::string_view what) const;

 private:
  const nlohmann::json* value_;
  std::string place_;
};

/// Replaces each occurrence of a text: a step of type Replace.
struct Replacement {
  std::string from;  ///< Not empty.
  std::string to;

  static Result<Replacement> parse(const Section& step);
  std::string apply(std::string_view text) const;
};

}  // namespace temper::actors
