#include "orchestrator/pipeline/difference.hpp"

#include <sstream>

namespace temper::orchestrator {

std::pair<std::string, std::string> first_difference(const std::string& a, const std::string& b) {
  std::istringstream as(a), bs(b);
  std::string from_a, from_b;
  do {
    from_a = from_b = "";
    std::getline(as, from_a);
    std::getline(bs, from_b);
  } while (from_a == from_b && (as || bs));
  return {from_a, from_b};
}

}  // namespace temper::orchestrator
