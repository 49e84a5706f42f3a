// Parts of a response, shared by the roles and the protocol.
#pragma once

#include "core/describe.hpp"

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

template <class V>
void describe(V& v, Segment& s) {
  v.field(1, "version", s.version, {.doc = "Policy version."});
  v.field(2, "tokens", s.tokens, {.doc = "Number of consecutive tokens."});
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
