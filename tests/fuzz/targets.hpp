// What is read from outside, as functions of any bytes: each reads them as what it is named after,
// and holds whatever is true of such a reading. It returns; anything else is a defect. A test runs
// them over the corpus and changes of it (fuzz_test.cpp); `./x fuzz` runs them under libFuzzer.
#pragma once

#include <span>
#include <string_view>

namespace temper::fuzz {

struct Target {
  std::string_view name;  ///< Also of its folder in corpus/.
  void (*run)(std::string_view bytes);
};

/// events.log: as the bytes of its files, and as records that are packed and sealed as they are.
void log(std::string_view bytes);
/// A record of events.log, unpacked.
void record(std::string_view bytes);
/// What a checkpoint holds of the scheduler.
void snapshot(std::string_view bytes);
/// A packed piece.
void packed(std::string_view bytes);
/// certificates.jsonl, against the updates of a log that has none.
void certificates(std::string_view bytes);
void manifest(std::string_view bytes);
void json(std::string_view bytes);
void yaml(std::string_view bytes);
/// A message of the protocol: the first byte chooses which.
void message(std::string_view bytes);

// model_targets.cpp
void safetensors(std::string_view bytes);
void csv(std::string_view bytes);
/// tokenizer.json behind the first zero byte, a text to encode before it.
void tokenizer(std::string_view bytes);
/// config.json and generation_config.json of a model folder.
void model_config(std::string_view bytes);
/// What inference servers answer, and where they are.
void replies(std::string_view bytes);

inline constexpr Target kTargets[] = {{"certificates", certificates},
                                      {"csv", csv},
                                      {"json", json},
                                      {"log", log},
                                      {"manifest", manifest},
                                      {"message", message},
                                      {"model_config", model_config},
                                      {"packed", packed},
                                      {"record", record},
                                      {"replies", replies},
                                      {"safetensors", safetensors},
                                      {"snapshot", snapshot},
                                      {"tokenizer", tokenizer},
                                      {"yaml", yaml}};

}  // namespace temper::fuzz
