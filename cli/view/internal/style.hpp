// What all lines of a view look like.
#pragma once

#include "cli/view/canvas.hpp"

namespace temper::cli {

inline constexpr Paint kTitle{.foreground = -1, .bold = true};
inline constexpr Paint kLabel{.foreground = 245};
inline constexpr std::size_t kIndent = 2;
inline constexpr std::size_t kLabelWidth = 13;  ///< Of the words that a line begins with.

}  // namespace temper::cli
