// What is read from outside, as functions of any bytes: each reads them as what it is named after,
// and holds whatever is true of such a reading. It returns; anything else is a defect. A test runs
// them over the corpus and changes of it (fuzz_test.cpp); `./x fuzz` runs them under libFuzzer.
#pragma once

#include <cstddef>
#include <string_view>

namespace temper::fuzz {

struct Target {
  std::string_view name;  ///< Also of its folder in corpus/.
  void (*run)(std::string_view bytes);
  /// What is fuzzed is no longer: enough for each part of the format a few times over.
  std::size_t longest;
};

/// events.log: as the bytes of its files, and as records that are packed and sealed as they are.
void log(std::string_view bytes);
/// A record of events.log, unpacked.
void record(std::string_view bytes);
/// What a checkpoint holds of the scheduler; the first byte chooses the sizes of its run's groups
/// and updates.
void snapshot(std::string_view bytes);
/// A packed piece.
void packed(std::string_view bytes);
/// certificates.jsonl, against the updates of a log that has none.
void certificates(std::string_view bytes);
void manifest(std::string_view bytes);
/// summary.json, as an audit reads it.
void summary(std::string_view bytes);
void json(std::string_view bytes);
void yaml(std::string_view bytes);
/// A message of the protocol: the first byte chooses which.
void message(std::string_view bytes);

// border_targets.cpp
/// What engines, references and reward roles answer, at the border of a run: the first byte chooses
/// the message.
void answers(std::string_view bytes);
/// The same answers with values near the bounds of the border: each byte is a choice, so that most
/// inputs pass the decoder.
void drawn_answers(std::string_view bytes);
/// A line that a verifier writes.
void verdict(std::string_view bytes);
/// What an agent asks of its endpoint: the first byte chooses the route, or the path.
void agent_request(std::string_view bytes);
/// scale.request
void scale_request(std::string_view bytes);

// page_targets.cpp
/// A request to the web page of runs, by lines: method, target, cookie, authorization,
/// accept-encoding, host.
void page_request(std::string_view bytes);
/// A file of a run folder that the page shows: the first byte chooses which.
void page_files(std::string_view bytes);

// model_targets.cpp
void safetensors(std::string_view bytes);
/// The metadata of a GGUF file.
void gguf(std::string_view bytes);
void csv(std::string_view bytes);
/// tokenizer.json behind the first zero byte, a text to encode before it.
void tokenizer(std::string_view bytes);
/// config.json and generation_config.json of a model folder.
void model_config(std::string_view bytes);
/// What inference servers answer, and where they are: the first byte chooses of which kind, and
/// what it answers.
void replies(std::string_view bytes);

inline constexpr Target kTargets[] = {{"agent_request", agent_request, 1024},
                                      {"answers", answers, 1024},
                                      {"certificates", certificates, 2048},
                                      {"csv", csv, 1024},
                                      {"drawn_answers", drawn_answers, 64},
                                      {"gguf", gguf, 2048},
                                      {"json", json, 1024},
                                      {"log", log, 2048},
                                      {"manifest", manifest, 1024},
                                      {"message", message, 1024},
                                      {"model_config", model_config, 1024},
                                      {"packed", packed, 2048},
                                      {"page_files", page_files, 1024},
                                      {"page_request", page_request, 512},
                                      {"record", record, 1024},
                                      {"replies", replies, 1024},
                                      {"safetensors", safetensors, 1024},
                                      {"scale_request", scale_request, 512},
                                      {"snapshot", snapshot, 4096},
                                      {"summary", summary, 2048},
                                      {"tokenizer", tokenizer, 4096},
                                      {"verdict", verdict, 512},
                                      {"yaml", yaml, 1024}};

}  // namespace temper::fuzz
