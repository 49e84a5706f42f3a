#pragma once

#include <string>
#include <vector>

namespace temper {

/// As exec() takes its words: a pointer to each text, and a null at the end. Valid while `texts`
/// is.
inline std::vector<char*> null_ended(std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (std::string& text : texts)
    result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

}  // namespace temper
