// A setting that a run was resumed with, where it had another value before.
#pragma once

#include <string>

namespace temper::orchestrator {

struct SettingChange {
  std::string key;  ///< "algorithm.learning_rate".
  std::string from, to;
  bool operator==(const SettingChange&) const = default;
};

void describe(auto& v, SettingChange& c) {
  v.field(1, "key", c.key);
  v.field(2, "from", c.from);
  v.field(3, "to", c.to);
}

}  // namespace temper::orchestrator
