#include "actors/byte_pair/metaspace.hpp"

#include "core/json_document.hpp"

namespace temper::actors {

Result<Metaspace> Metaspace::parse(const Section& step) {
  Metaspace made;
  TEMPER_TRY(made.replacement_, step.character("replacement"));
  TEMPER_TRY(made.splits_, step.flag("split", true));
  // Files of older versions have only `add_prefix_space`.
  TEMPER_TRY(const bool prefix, step.flag("add_prefix_space", true));
  const Section scheme = step.at("prepend_scheme");
  if (scheme.value() == "first")
    made.prefix_ = Prefix::First;
  else if (scheme.value() == "never" || (scheme.is_null() && !prefix))
    made.prefix_ = Prefix::Never;
  else if (scheme.value() != "always" && !scheme.is_null())
    return scheme.expected("always, first or never");
  if (!prefix && made.prefix_ != Prefix::Never)
    return scheme.expected("never, because `add_prefix_space` is false");
  return made;
}

std::string Metaspace::encode(std::string_view text, TextPlace place) const {
  std::string out = Replacement{" ", replacement_}.apply(text);
  const bool prepends =
      prefix_ == Prefix::Always || (prefix_ == Prefix::First && place == TextPlace::Start);
  if (prepends && !out.starts_with(replacement_))
    out.insert(0, replacement_);
  return out;
}

std::string Metaspace::decode(std::string_view token, TextPlace place) const {
  const bool prefixed = place == TextPlace::Start && prefix_ != Prefix::Never;
  return Replacement{replacement_, prefixed ? "" : " "}.apply(token);
}

}  // namespace temper::actors
