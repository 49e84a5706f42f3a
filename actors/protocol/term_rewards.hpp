// Rewards of the terms of a verifier, before their weights.
#pragma once

#include <cmath>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace temper::actors {

/// By name of the term: a reward per response; NaN: the term does not apply.
using TermRewards = std::map<std::string, std::vector<double>>;

/// Those of one response, without the terms that do not apply to it.
inline std::map<std::string, double> rewards_at(const TermRewards& terms, std::size_t response) {
  std::map<std::string, double> out;
  for (const auto& [name, rewards] : terms) {
    if (response < rewards.size() && !std::isnan(rewards[response]))
      out.emplace(name, rewards[response]);
  }
  return out;
}

}  // namespace temper::actors
