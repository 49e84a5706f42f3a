// The rules that a configuration breaks, collected one after the other.
#pragma once

#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace temper::orchestrator {

/// A broken rule. The first key is the one to blame; the others take part in it.
struct BrokenRule {
  std::vector<std::string> keys;
  std::string message;
};

class Rules {
 public:
  /// Notes the rule as broken unless `holds`.
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
