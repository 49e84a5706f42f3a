// Checks whether a machine has what runs need.
#pragma once

#include "core/describe.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace temper::orchestrator {

struct Finding {
  /// Fine; Note: something that only some runs need is missing; Missing: something that every run
  /// needs is missing.
  enum class State { Fine, Note, Missing };
  State state = State::Fine;
  std::string what;
  std::string found;
  std::string advice;  ///< Next step; empty if Fine.
};

/// `programs`: folder of temper-worker and the other programs; `configs`: folder of the shipped
/// configurations.
std::vector<Finding> examine_machine(const std::filesystem::path& programs,
                                     const std::filesystem::path& configs);

void describe(auto& v, Finding& f) {
  v.field(1, "state", f.state);
  v.field(2, "what", f.what);
  v.field(3, "found", f.found);
  v.field(4, "advice", f.advice);
}

}  // namespace temper::orchestrator

namespace temper {
template <>
struct EnumNames<orchestrator::Finding::State> {
  using S = orchestrator::Finding::State;
  static constexpr std::array<std::pair<S, std::string_view>, 3> value{
      {{S::Fine, "fine"}, {S::Note, "note"}, {S::Missing, "missing"}}};
};
}  // namespace temper
