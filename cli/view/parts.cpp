#include "cli/view/parts.hpp"

#include "core/text/numbers.hpp"

namespace temper::cli {

Paint paint_of(actors::CardState state) {
  using S = actors::CardState;
  switch (state) {
    case S::Train:
      return {.foreground = 69};
    case S::Decode:
      return {.foreground = 72};
    case S::Prefill:
      return {.foreground = 74};
    case S::Reference:
      return {.foreground = 175};
    case S::Reward:
      return {.foreground = 141};
    case S::Evaluate:
      return {.foreground = 143};
    case S::WeightSync:
      return {.foreground = 179};
    case S::Switch:
      return {.foreground = 137};
    case S::WaitData:
      return {.foreground = 101};
    case S::WaitWeights:
      return {.foreground = 66};
    case S::WaitQuota:
      return {.foreground = 96};
    case S::WaitTools:
      return {.foreground = 60};
    case S::Idle:
      return {.foreground = 238};
    case S::Down:
      return {.foreground = 241};
  }
  return {};
}

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
