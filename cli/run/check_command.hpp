// `temper check CONFIG`: is it valid, what does it resolve to, which actor runs on which cards.
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
  enum class Keys { Changed, All } keys = Keys::Changed;  ///< Changed: not as they are by default.
};

/// The exit code: 0 if the configuration is good, 2 if not. Text: the resolved YAML and the card
/// map to `out`, issues to `err`, one per line. Json: one object with `ok`, `issues`, `config` and
/// `actors` to `out`, whether good or not.
int run_check(const CheckOptions& options, std::ostream& out, std::ostream& err);

/// `temper check`: its flags, and what it does.
Handler check_command(Flags& flags);

}  // namespace temper::cli
