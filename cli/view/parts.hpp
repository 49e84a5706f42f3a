// Paints, labels and figures shared by the views of a run. A figure that does not fit is left out.
#pragma once

#include "actors/protocol/lifecycle.hpp"
#include "cli/view/canvas.hpp"

#include <string_view>

namespace temper::cli {

inline constexpr Paint kTitle{.foreground = -1, .bold = true};
inline constexpr Paint kLabel{.foreground = 245};
inline constexpr Paint kFaint{.foreground = 243};  // 4.5:1 and more on black and on white
inline constexpr Paint kGood{.foreground = 114};
inline constexpr Paint kBad{.foreground = 203};
inline constexpr Paint kAccent{.foreground = 75};
inline constexpr std::size_t kIndent = 2;
inline constexpr std::size_t kLabelWidth = 13;

/// The color of a state: the nearest of 256 colors to the web page's dark theme (web/src/page.css).
Paint paint_of(actors::CardState state);
Canvas& label(Canvas& c, std::string_view text);
/// A label and a figure: "trained 18.2k". Left out unless it fits completely.
void figure(Canvas& c, std::string_view what, std::string_view value);
/// Faint text. Left out unless it fits completely.
void remark(Canvas& c, std::string_view text, Paint paint);
void per_card(Canvas& c, double trained);

}  // namespace temper::cli
