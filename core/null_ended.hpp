#pragma once

#include <string>
#include <vector>

namespace temper {

/// Arguments for exec(): a pointer to each text, then a null pointer. Valid as long as `texts` is
/// unchanged.
inline std::vector<char*> null_ended(std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (std::string& text : texts)
    result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

}  // namespace temper
