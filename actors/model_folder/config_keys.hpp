// Which keys of a config.json can change what the network computes.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace temper::actors {

struct JudgedKey {
  enum class Effect {
    None,     ///< It cannot change the computation, is off, or has the value that is computed.
    Refused,  ///< It changes the computation to one that is not computed; `why` names it.
    Unknown,  ///< Nothing is known of it, and it is set.
  };
  Effect effect = Effect::None;
  std::string why{};
};

JudgedKey judge_key(const std::string& key, const nlohmann::json& value);

}  // namespace temper::actors
