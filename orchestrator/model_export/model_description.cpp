#include "orchestrator/model_export/model_description.hpp"

#include "actors/byte_pair/byte_pair_tokenizer.hpp"
#include "orchestrator/model_source/model_source.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;

std::string tokenizer_text(const actors::ModelFolder& folder) {
  if (!folder.has_tokenizer())
    return "none; rows of a task need prompt_token_ids";
  const auto tokenizer = actors::BytePairTokenizer::open(folder.path() / actors::kTokenizerFile);
  if (!tokenizer)
    return "unreadable: " + tokenizer.error().context;
  return fmt::format("{}, {} tokens",
                     tokenizer->byte_level() ? "byte-level BPE" : "SentencePiece BPE",
                     tokenizer->size());
}

}  // namespace

Result<ModelDescription> describe_model(const fs::path& path, std::span<const std::string> ignore) {
  TEMPER_TRY(const fs::path found, find_model_folder(path));
  TEMPER_TRY(const auto folder, actors::ModelFolder::open(found, ignore));
  TEMPER_TRY(const auto layout, actors::Layout::make(folder.model(), 0));
  TEMPER_TRY_STATUS(folder.check(layout));
  ModelDescription d;
  d.name = fs::weakly_canonical(path).filename().string();
  d.model = folder.model();
  d.model.end_tokens = folder.end_tokens();
  d.type = folder.type();
  d.parameters = layout.parameters();
  d.stored = Bytes(d.parameters * (d.type == actors::StoredType::Float32 ? 4 : 2));
  d.files = folder.shards();
  d.tensors = static_cast<std::int32_t>(layout.stored().size());
  d.tokenizer = tokenizer_text(folder);
  return d;
}

std::string to_text(const ModelDescription& d) {
  const actors::ModelConfig& m = d.model;
  std::string out;
  const auto line = [&](const char* what, const std::string& value) {
    out += fmt::format("{:<14} {}\n", what, value);
  };
  line("model", d.name);
  line("architecture", std::string(name_of(m.architecture)));
  line("parameters",
       fmt::format("{:.4g} million, {:.4g} GB as {}",
                   static_cast<double>(d.parameters) / 1e6,
                   static_cast<double>(d.stored.count()) / 1e9,
                   name_of(d.type)));
  line("layers", fmt::format("{} of width {}, feed-forward {}", m.layers, m.hidden, m.ffn));
  line("heads",
       fmt::format("{} of width {}, {} key/value heads", m.heads, m.head_size(), m.kv_heads));
  line("vocabulary",
       fmt::format(
           "{}, {}", *m.vocabulary, m.tie_embeddings ? "tied embeddings" : "separate output head"));
  line("context",
       fmt::format("{} tokens, rope_theta {}{}",
                   m.context.count(),
                   m.rope_base,
                   m.rope_scaling ? fmt::format(", scaled {} times from {} tokens (llama3)",
                                                m.rope_scaling->factor,
                                                m.rope_scaling->original_context.count())
                                  : ""));
  line("end tokens",
       m.end_tokens.empty() ? "none" : fmt::format("{}", fmt::join(m.end_tokens, ", ")));
  line("tokenizer", d.tokenizer);
  line("weights", fmt::format("{} tensors in {}", d.tensors, fmt::join(d.files, ", ")));
  return out;
}

}  // namespace temper::orchestrator
