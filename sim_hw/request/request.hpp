// A request to the hardware model, from a measurement row or the command line: `hardware, cards,
// kind, k=v;k=v`. Params returns typed values and records the keys that were read, so that an
// unknown key is an error with the nearest valid name. Values only.
#pragma once

#include "core/result.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace temper::sim_hw {

class Params {
 public:
  Params() = default;
  explicit Params(std::map<std::string, std::string> values) : values_(std::move(values)) {}
  /// Parses "k=v;k=v"; may be empty.
  static Result<Params> parse(std::string_view text);
  /// Parses words "k=v", whose values may contain spaces and semicolons.
  static Result<Params> from_words(std::span<const std::string> words);

  /// Errors name the key and the expected value if it is missing or malformed.
  Result<std::int64_t> integer(std::string_view key) const;
  Result<std::int64_t> integer(std::string_view key, std::int64_t otherwise) const;
  Result<double> number(std::string_view key) const;
  Result<double> number(std::string_view key, double otherwise) const;
  Result<std::string> text(std::string_view key) const;
  std::string text(std::string_view key, std::string_view otherwise) const;
  bool has(std::string_view key) const;
  /// Error: a key was given that no call above has read.
  Status all_used() const;

  const std::map<std::string, std::string>& values() const { return values_; }
  std::string to_text() const;  ///< "k=v;k=v", keys sorted.

 private:
  const std::string* find(std::string_view key) const;
  std::map<std::string, std::string> values_;
  mutable std::map<std::string, bool, std::less<>> asked_;
};

/// A number above 0, and a number of 1 or more; errors name the key and the value.
Result<double> positive(const Params& params, std::string_view key);
Result<double> at_least_one(const Params& params, std::string_view key);

struct Request {
  std::string hardware;  ///< Name in configs/hardware or path of a YAML file.
  std::int64_t cards = 1;
  std::string kind;  ///< gemm, decode_step, train_step, ...
  Params params;
};

}  // namespace temper::sim_hw
