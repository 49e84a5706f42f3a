// Joins tokens to a text: the section `decoder` of a tokenizer.json.
#pragma once

#include "actors/byte_pair/metaspace.hpp"

#include <variant>

namespace temper::actors {

class Decoder {
 public:
  /// Supports ByteLevel, Metaspace, Replace of a fixed text, ByteFallback, Fuse, Strip, and a
  /// Sequence of these. Errors: Unsupported, naming any other kind or value.
  static Result<Decoder> parse(const Section& section);
  /// Requires: tokens in UTF-8. Bytes that are not UTF-8 together become U+FFFD.
  std::string decode(std::vector<std::string> tokens) const;
  /// True if tokens are bytes in the form of to_byte_characters().
  bool from_bytes() const { return from_bytes_; }

 private:
  struct ByteLevel {};
  /// Runs of tokens such as <0xE2> become the text that they are in UTF-8.
  struct ByteFallback {};
  struct Fuse {};
  /// Removes a character from the start and the end of each token, at most so many times.
  struct Strip {
    std::string content;
    std::uint64_t start = 0;
    std::uint64_t stop = 0;
  };
  using Step = std::variant<ByteLevel, ByteFallback, Fuse, Strip, Replacement, Metaspace>;
  static Result<Step> parse_step(const Section& step);
  // What each kind of step does to the tokens.
  static void apply(const ByteLevel& step, std::vector<std::string>& tokens);
  static void apply(const ByteFallback& step, std::vector<std::string>& tokens);
  static void apply(const Fuse& step, std::vector<std::string>& tokens);
  static void apply(const Strip& step, std::vector<std::string>& tokens);
  static void apply(const Replacement& step, std::vector<std::string>& tokens);
  static void apply(const Metaspace& step, std::vector<std::string>& tokens);

  std::vector<Step> steps_;
  bool from_bytes_ = false;
};

}  // namespace temper::actors
