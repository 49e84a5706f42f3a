// The config.json of a model folder: a ModelConfig in the words of Hugging Face transformers.
//
// Every key is one that we read, one that cannot change what the network computes, or one that must
// have the value under which it changes nothing. Any other key is refused by its name, unless it is
// off (null, false, empty) or the user says that it may be ignored: a network that is computed
// wrongly is worse than one that is not computed.
#pragma once

#include "actors/model/model_config.hpp"
#include "actors/model_folder/safetensors.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace temper::actors {

struct ConfigJson {
  ModelConfig model;  ///< Without a path; `vocabulary` and `head_dim` are given.
  StoredType type = StoredType::Float32;
  std::vector<std::int32_t> end_tokens;  ///< eos_token_id; empty: not said.
  std::vector<std::string> ignored{};    ///< Unknown keys that are set, and allowed by the caller.
};

/// Errors: all that is wrong, by key: not JSON, an architecture that is unknown (with the list of
/// those known), a number that is missing or out of range, a setting that is not computed.
/// `ignore`: unknown keys that may be set; a key that is known to change the computation is refused
/// anyway.
Result<ConfigJson> parse_config_json(std::string_view text,
                                     std::span<const std::string> ignore = {});

/// As transformers writes it. Requires: `vocabulary` is given.
std::string write_config_json(const ConfigJson& config);
/// The same object with another type of weights; what else it says stays. Requires: it parses.
std::string with_stored_type(std::string_view config_json, StoredType type);

/// eos_token_id of a generation_config.json: one or several. Error: not JSON, not a token.
Result<std::vector<std::int32_t>> parse_end_tokens(std::string_view generation_config);

}  // namespace temper::actors
