#pragma once

#include <string>
#include <string_view>

namespace temper::actors {

/// Replaces every occurrence of `what` with `by`; inserted text is not searched again.
inline void replace_all(std::string& text, std::string_view what, const std::string& by) {
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
}

}  // namespace temper::actors
