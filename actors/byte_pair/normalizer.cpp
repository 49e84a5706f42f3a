#include "actors/byte_pair/normalizer.hpp"

#include "actors/byte_pair/unicode.hpp"

namespace temper::actors {

Result<Normalizer> Normalizer::parse(const Section& section) {
  Normalizer made;
  for (const Section& step : section.steps("normalizers")) {
    const std::string type = step.type();
    if (type == "NFC") {
      made.steps_.emplace_back(Compose{});
    } else if (type == "Prepend") {
      TEMPER_TRY(std::string text, step.text("prepend"));
      made.steps_.emplace_back(Prepend{std::move(text)});
    } else if (type == "Replace") {
      TEMPER_TRY(Replacement replacement, Replacement::parse(step));
      made.steps_.emplace_back(std::move(replacement));
    } else {
      return step.unsupported();
    }
  }
  return made;
}

std::string Normalizer::apply(std::string_view text) const {
  std::string out(text);
  for (const auto& step : steps_) {
    if (const auto* const prepend = std::get_if<Prepend>(&step)) {
      if (!out.empty())
        out.insert(0, prepend->text);
    } else if (const auto* const replacement = std::get_if<Replacement>(&step)) {
      out = replacement->apply(out);
    } else {
      out = compose(out);
    }
  }
  return out;
}

}  // namespace temper::actors
