// Collects violated rules of a configuration.
#pragma once

#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace temper::orchestrator {

/// A violated rule. The first key is the place that is reported; the other keys are involved.
struct BrokenRule {
  std::vector<std::string> keys;
  std::string message;
};

class Rules {
 public:
  /// Records a violation unless `holds`.
  void require(bool holds, std::vector<std::string> keys, std::string message) {
    if (!holds)
      broken_.push_back({std::move(keys), std::move(message)});
  }
  void add(std::vector<BrokenRule> broken) {
    std::move(broken.begin(), broken.end(), std::back_inserter(broken_));
  }
  bool hold() const { return broken_.empty(); }
  std::vector<BrokenRule> take() { return std::move(broken_); }

 private:
  std::vector<BrokenRule> broken_;
};

}  // namespace temper::orchestrator
