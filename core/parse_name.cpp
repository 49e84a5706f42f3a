#include "core/parse_name.hpp"

#include "core/nearest_name.hpp"

#include <fmt/format.h>

namespace temper {

Error unknown_name(std::string_view flag,
                   std::string_view word,
                   const std::vector<std::string>& known) {
  const auto nearest = nearest_name(word, known);
  return Error{ErrorCode::InvalidInput,
               fmt::format("{} {}: {}",
                           flag,
                           word,
                           nearest ? fmt::format("did you mean `{}`?", *nearest)
                                   : "known are " + quoted_list(known))};
}

}  // namespace temper
