// What answers about simulated runs say of the constants that they rest on.
#pragma once

#include <iosfwd>
#include <span>
#include <string>

namespace temper::cli {

/// Of a pipeline as commands name it; empty on this machine, or if every constant was measured.
std::string constants_note(const std::string& config, std::span<const std::string> sets);

/// Where what is said beside an answer goes: behind it, or, if a program reads that, to `err` once
/// it is written.
std::ostream& beside(bool for_programs, std::ostream& out, std::ostream& err);

}  // namespace temper::cli
