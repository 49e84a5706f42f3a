#include "cli/view/parts.hpp"

#include "core/text/numbers.hpp"

namespace temper::cli {

Canvas& label(Canvas& c, std::string_view text) {
  return c.to(kIndent).text(text, kLabel).to(kIndent + kLabelWidth);
}

void figure(Canvas& c, std::string_view what, std::string_view value) {
  if (c.room() < display_width(what) + 1 + display_width(value))
    return;
  c.text(what, kLabel).text(" ").text(value, kTitle).text("  ");
}

void remark(Canvas& c, std::string_view text, Paint paint) {
  if (c.room() >= display_width(text))
    c.text(text, paint);
}

void per_card(Canvas& c, double trained) {
  const std::string value = short_number(trained);
  constexpr std::string_view kLong = "trained per card";
  figure(c, c.room() > kLong.size() + value.size() ? kLong : "per card", value);
}

}  // namespace temper::cli
