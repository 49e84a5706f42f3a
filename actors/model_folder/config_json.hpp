// Reads and writes the config.json of a Hugging Face model folder as a ModelConfig.
//
// Every key is either read, known not to affect the computation, or required to have the value that
// Temper computes. Any other key is an error, unless it is off (null, false, empty) or the user
// allows ignoring it: rejecting a model is better than computing it wrongly.
#pragma once

#include "actors/model/model_config.hpp"
#include "actors/model_folder/safetensors.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace temper::actors {

struct ConfigJson {
  ModelConfig model;  ///< Without a path; `vocabulary` and `head_dim` are set.
  StoredType type = StoredType::Float32;
  std::vector<std::int32_t> end_tokens;  ///< eos_token_id; empty if not given.
  std::vector<std::string> ignored{};    ///< Unknown keys that are set and that the caller allows.
};

/// Error InvalidInput: lists every problem by key: not JSON, an unknown architecture (with the
/// known ones), a number that is missing or out of range, an unsupported setting. `ignore`: unknown
/// keys that may be set; keys known to change the computation are rejected anyway.
Result<ConfigJson> parse_config_json(std::string_view text,
                                     std::span<const std::string> ignore = {});

/// Writes it like transformers. Requires: `vocabulary` is set.
std::string write_config_json(const ConfigJson& config);
/// Changes the type of the weights and keeps everything else. Requires: the text parses.
std::string with_stored_type(std::string_view config_json, StoredType type);

/// The eos_token_id of a generation_config.json: one or several tokens. Error InvalidInput: not
/// JSON, or not tokens.
Result<std::vector<std::int32_t>> parse_end_tokens(std::string_view generation_config);

}  // namespace temper::actors
