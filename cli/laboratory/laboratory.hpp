// What the laboratory adds to `temper`. A build without it (-DTEMPER_LAB=OFF) links
// no_laboratory.cpp instead of laboratory.cpp.
#pragma once

#include "cli/command/command_line.hpp"
#include "sim_hw/hardware/hardware_spec.hpp"

#include <span>
#include <string>
#include <vector>

namespace temper::cli {

/// The commands of `temper-study` in the order of --help, without handlers.
std::span<const Command> study_commands();

/// The same commands for `temper`. Each one starts `temper-study`; without the laboratory, it is
/// not listed and prints how to build it.
std::vector<Command> laboratory_commands();

/// The possible error of the times of a run on simulated hardware, one or more lines, each
/// terminated. Without the laboratory: the number of constants that were not measured. Empty if all
/// constants were measured.
std::string simulated_run_note(std::span<const sim_hw::HardwareSpec* const> hardware);

}  // namespace temper::cli
