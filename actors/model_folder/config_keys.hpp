// Classifies keys of a config.json by their effect on the computation.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace temper::actors {

struct JudgedKey {
  enum class Effect {
    None,     ///< Does not change the computation, is off, or has the supported value.
    Refused,  ///< Changes the computation to an unsupported one; `why` explains.
    Unknown,  ///< Unknown, and set.
  };
  Effect effect = Effect::None;
  std::string why{};
};

JudgedKey judge_key(const std::string& key, const nlohmann::json& value);

}  // namespace temper::actors
