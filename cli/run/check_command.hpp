// `temper check CONFIG`: validates a configuration and prints its resolved values, cards and
// memory.
#pragma once

#include "cli/command/command_line.hpp"

#include <iosfwd>
#include <string>
#include <vector>

namespace temper::cli {

struct CheckOptions {
  std::string config;             ///< Path of the YAML file.
  std::vector<std::string> sets;  ///< "a.b=c".
  enum class Format { Text, Json } format = Format::Text;
  enum class Keys {
    Changed,
    All
  } keys = Keys::Changed;  ///< Changed: keys with non-default values.
};

/// Returns exit code 0 if the configuration is valid, else 2. Text: writes the resolved YAML and
/// the card map to `out`, and issues to `err`, one per line. Json: writes one object with `ok`,
/// `issues`, `config` and `actors` to `out` in both cases.
int run_check(const CheckOptions& options, std::ostream& out, std::ostream& err);

/// Declares the flags of `temper check`.
Handler check_command(Flags& flags);

}  // namespace temper::cli
