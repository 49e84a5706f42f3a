// Divides text: at separators, into lines, and from the white space around it. Results point into
// the text. Pure functions.
#pragma once

#include <string_view>
#include <vector>

namespace temper {

/// The parts between separators: one more than there are separators. Requires: `separator` is not
/// empty.
std::vector<std::string_view> split(std::string_view text, std::string_view separator);

/// The lines without their line breaks; without an empty one behind the last line break.
std::vector<std::string_view> lines_of(std::string_view text);

/// Without ASCII white space at both ends.
std::string_view trimmed(std::string_view text);

}  // namespace temper
