// What is read of models that others made, of servers, and of tables.
#include "actors/byte_pair/byte_pair_tokenizer.hpp"
#include "actors/model_folder/adapter_folder.hpp"
#include "actors/model_folder/config_json.hpp"
#include "actors/model_folder/gguf_reader.hpp"
#include "actors/model_folder/gguf_tokenizer.hpp"
#include "actors/model_folder/safetensors.hpp"
#include "actors/server/server_api.hpp"
#include "actors/server/url.hpp"
#include "core/check.hpp"
#include "core/text/csv.hpp"
#include "tests/fuzz/targets.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

namespace temper::fuzz {

using namespace actors;

void safetensors(std::string_view bytes) {
  const auto image = parse_safetensors(std::as_bytes(std::span(bytes)));
  if (!image)
    return;
  std::vector<std::vector<float>> values;
  std::vector<TensorToWrite> tensors;
  for (const TensorView& tensor : image->tensors) {
    const std::size_t width = tensor.type == StoredType::Float32 ? 4 : 2;
    values.emplace_back(tensor.bytes.size() / width);
    copy_values(tensor, values.back());
    tensors.push_back({tensor.name, tensor.shape, values.back()});
  }
  const std::string written = write_safetensors(tensors, {});
  const auto again = parse_safetensors(std::as_bytes(std::span(written)));
  TEMPER_CHECK(again && again->tensors.size() == tensors.size(),
               "tensors that were read can be written and read");
}

void gguf(std::string_view bytes) {
  const auto file = GgufFile::parse(std::as_bytes(std::span(bytes)), bytes.size());
  if (!file)
    return;
  for (const auto& [name, tensor] : file->tensors()) {
    const auto stored = std::as_bytes(std::span(bytes)).subspan(tensor.begin, tensor.bytes);
    std::vector<float> values(static_cast<std::size_t>(tensor.elements()));
    dequantize(tensor.type, stored, values);
  }
  std::ignore = read_gguf_config(*file);
  std::ignore = read_gguf_tokenizer(*file);
}

void csv(std::string_view bytes) {
  const auto table = parse_csv("fuzz.csv", bytes);
  if (!table)
    return;
  std::string text = csv_line(table->header);
  for (const auto& row : table->rows) {
    TEMPER_CHECK(row.size() == table->header.size(), "a row is as long as the header");
    text += csv_line(row);
  }
  const auto again = parse_csv("again.csv", text);
  TEMPER_CHECK(again && again->header == table->header, "a header is as it was written");
}

void tokenizer(std::string_view bytes) {
  // A text to encode stands before the first zero byte, if there is any.
  const std::size_t zero = bytes.find('\0');
  const std::string_view text = zero == std::string_view::npos ? "a b" : bytes.substr(0, zero);
  const auto read =
      BytePairTokenizer::parse(zero == std::string_view::npos ? bytes : bytes.substr(zero + 1));
  if (!read)
    return;
  const auto tokens = read->encode(text);
  if (!tokens)
    return;
  for (const std::int32_t token : *tokens)
    TEMPER_CHECK(token >= 0 && token < read->size(), "every id is below the size");
  std::ignore = read->decode(*tokens);
}

void model_config(std::string_view bytes) {
  std::ignore = parse_config_json(bytes);
  std::ignore = parse_end_tokens(bytes);
  if (const auto adapter = parse_adapter_config(bytes)) {
    TEMPER_CHECK(adapter->lora.rank >= 1 && adapter->lora.scale() > 0, "an adapter is possible");
  }
}

void replies(std::string_view bytes) {
  if (bytes.empty())
    return;
  constexpr EngineKind kKinds[] = {
      EngineKind::Vllm, EngineKind::Sglang, EngineKind::Openai, EngineKind::Llamacpp};
  const auto choice = static_cast<unsigned char>(bytes.front());
  bytes.remove_prefix(1);
  ServerSampling sampling;
  sampling.vocabulary = 64;
  sampling.model = "m";
  EngineConfig config;
  config.kind = kKinds[choice % std::size(kKinds)];
  const auto api = make_server_api(config, sampling);
  switch (choice / std::size(kKinds) % 6) {
    case 0:
      for (int probe = 0; probe < 8 && api->next_probe(); ++probe)
        std::ignore = api->learn(200, bytes);
      return;
    case 1:
      if (const auto reply = api->read_generated(bytes)) {
        for (const std::int32_t token : reply->tokens)
          TEMPER_CHECK(token >= 0 && token < sampling.vocabulary, "tokens are of the vocabulary");
      }
      return;
    case 2: {
      const std::vector<std::int32_t> tokens{1, 2, 3};
      if (const auto scores = api->read_scores(bytes, tokens))
        TEMPER_CHECK(scores->size() == (api->scores_at_once() ? tokens.size() - 1 : 1),
                     "a score for all tokens but the first, or for the last");
      return;
    }
    case 3:
      std::ignore = api->check_loaded(bytes);
      std::ignore = api->read_version(bytes);
      return;
    case 4:
      std::ignore = api->read_load(bytes);
      return;
    default:
      std::ignore = parse_url(bytes);
  }
}

}  // namespace temper::fuzz
