// Parts of a response, shared by the roles and the protocol.
#pragma once

#include "core/describe.hpp"

#include <string>
#include <vector>

namespace temper {
namespace actors {

enum class FinishReason { End, Length, Interrupted, Failed };

/// `tokens` consecutive response tokens sampled under one policy version.
struct Segment {
  PolicyVersion version;
  Tokens tokens;
  bool operator==(const Segment&) const = default;
};

void describe(auto& v, Segment& s) {
  v.field(1, "version", s.version, {.doc = "Policy version."});
  v.field(2, "tokens", s.tokens, {.doc = "Number of consecutive tokens."});
}

/// An array that an engine attaches to a response, for the trainer: its bytes lie in the store that
/// `payloads.store` names, and only this description travels through the orchestrator.
struct Tensor {
  std::string name;
  std::string dtype;  ///< As numpy names it, without byte order: that of the host.
  std::vector<std::uint32_t> shape;
  std::uint64_t bytes = 0;
  std::uint64_t checksum = 0;  ///< XXH3 of the bytes.
  std::string file;  ///< From the engine: a name in the store. To the trainer: a path, or a key.
};

void describe(auto& v, Tensor& t) {
  v.field(1, "name", t.name, {.doc = "Name."});
  v.field(2, "dtype", t.dtype, {.doc = "Type of an element, as numpy names it: `int32`."});
  v.field(3, "shape", t.shape, {.doc = "Shape, in C order."});
  v.field(4, "bytes", t.bytes, {.doc = "Size of the array."});
  v.field(5, "checksum", t.checksum, {.doc = "XXH3 (64 bits) of its bytes."});
  v.field(
      6,
      "file",
      t.file,
      {.doc = "From an engine: name of a file in the folder `tensors.folder` of its role, or of "
              "a key without `tensors.prefix`. To a trainer: a path, or a whole key."});
}

}  // namespace actors

template <>
struct EnumNames<actors::FinishReason> {
  static constexpr std::array<std::pair<actors::FinishReason, std::string_view>, 4> value{
      {{actors::FinishReason::End, "end"},
       {actors::FinishReason::Length, "length"},
       {actors::FinishReason::Interrupted, "interrupted"},
       {actors::FinishReason::Failed, "failed"}}};
};

}  // namespace temper
