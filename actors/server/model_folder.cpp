#include "actors/server/model_folder.hpp"

#include "core/files.hpp"
#include "core/json_document.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <vector>

namespace temper::actors {
namespace {

namespace fs = std::filesystem;

struct Header {
  nlohmann::json tensors;
  std::span<const std::byte> data;
};

Result<Header> header_of(std::span<const std::byte> image) {
  std::uint64_t length = 0;
  if (image.size() < sizeof length)
    return corrupt("an image of weights that is shorter than its header");
  std::memcpy(&length, image.data(), sizeof length);
  if (length > image.size() - sizeof length)
    return corrupt("an image of weights whose header is longer than it is");
  const auto text = image.subspan(sizeof length, length);
  Header header{parse_json({reinterpret_cast<const char*>(text.data()), text.size()}),
                image.subspan(sizeof length + length)};
  if (!header.tensors.is_object())
    return corrupt("an image of weights whose header is no JSON object");
  return header;
}

struct Piece {
  std::string name;
  std::string type = "F32";
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;
};

class Pieces {
 public:
  explicit Pieces(const Header& header) : header_(header) {}

  /// Rows [0, rows[0]), [rows[0], rows[0] + rows[1]), ... of `from`, each under its name. An image
  /// without `from` has them under these names already.
  Status cut(const std::string& from,
             const std::vector<std::pair<std::string, std::int64_t>>& parts,
             std::int64_t width) {
    const std::int64_t row_bytes = (width == 0 ? 1 : width) * std::int64_t{sizeof(float)};
    std::span<const std::byte> bytes;
    const bool fused = header_.tensors.contains(from);
    if (fused) {
      std::int64_t rows = 0;
      for (const auto& part : parts)
        rows += part.second;
      TEMPER_TRY(bytes, bytes_of(from, rows * row_bytes));
    }
    for (const auto& [name, count] : parts) {
      if (!fused) {
        TEMPER_TRY(bytes, bytes_of(name, count * row_bytes));
      }
      const auto size = static_cast<std::size_t>(count * row_bytes);
      std::vector<std::int64_t> shape{count};
      if (width != 0)
        shape.push_back(width);
      pieces_.push_back({name, "F32", std::move(shape), bytes.first(size)});
      bytes = bytes.subspan(size);
    }
    return {};
  }
  const std::vector<Piece>& all() const { return pieces_; }

 private:
  Result<std::span<const std::byte>> bytes_of(const std::string& name, std::int64_t size) const {
    const auto found = header_.tensors.find(name);
    if (found == header_.tensors.end() || !found->is_object())
      return corrupt(fmt::format("an image of weights without {}", name));
    const nlohmann::json offsets = found->value("data_offsets", nlohmann::json());
    if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
        !offsets[1].is_number_unsigned())
      return corrupt(fmt::format("{} has no offsets", name));
    const auto begin = offsets[0].get<std::uint64_t>();
    const auto end = offsets[1].get<std::uint64_t>();
    if (begin > end || end > header_.data.size() || end - begin != static_cast<std::uint64_t>(size))
      return corrupt(fmt::format("{} has not the {} bytes of this model's", name, size));
    return header_.data.subspan(begin, end - begin);
  }

  const Header& header_;
  std::vector<Piece> pieces_;
};

/// All tensors as they are: of an image that has the names of a model folder already.
Result<std::vector<Piece>> named_tensors(const Header& header) {
  std::vector<Piece> pieces;
  for (const auto& [name, tensor] : header.tensors.items()) {
    if (name == "__metadata__")
      continue;
    const nlohmann::json offsets =
        tensor.is_object() ? tensor.value("data_offsets", nlohmann::json()) : nlohmann::json();
    const bool whole = offsets.is_array() && offsets.size() == 2 &&
                       offsets[0].is_number_unsigned() && offsets[1].is_number_unsigned() &&
                       offsets[0] <= offsets[1] && offsets[1] <= header.data.size() &&
                       tensor.contains("dtype") && tensor["dtype"].is_string() &&
                       tensor.contains("shape") && tensor["shape"].is_array();
    if (!whole)
      return corrupt(fmt::format("{} is not described as a tensor", name));
    const auto begin = offsets[0].get<std::size_t>();
    pieces.push_back({name,
                      tensor["dtype"].get<std::string>(),
                      tensor["shape"].get<std::vector<std::int64_t>>(),
                      header.data.subspan(begin, offsets[1].get<std::size_t>() - begin)});
  }
  return pieces;
}

/// The tensors of the policy, fused as our network has them or not, under the names of a Llama.
Result<std::vector<Piece>> llama_tensors(const Header& header, const FolderModel& model) {
  const ModelConfig& m = model.shape;
  const std::int64_t d = m.hidden;
  const std::int64_t head = m.hidden / m.heads;
  Pieces pieces(header);
  TEMPER_TRY_STATUS(
      pieces.cut("embedding.weight", {{"model.embed_tokens.weight", model.vocabulary}}, d));
  for (std::int32_t i = 0; i < m.layers; ++i) {
    const std::string from = fmt::format("layers.{}.", i);
    const std::string to = fmt::format("model.layers.{}.", i);
    const std::string attention = to + "self_attn.";
    TEMPER_TRY_STATUS(
        pieces.cut(from + "attention_norm.weight", {{to + "input_layernorm.weight", d}}, 0));
    TEMPER_TRY_STATUS(pieces.cut(from + "attention.qkv.weight",
                                 {{attention + "q_proj.weight", head * m.heads},
                                  {attention + "k_proj.weight", head * m.kv_heads},
                                  {attention + "v_proj.weight", head * m.kv_heads}},
                                 d));
    TEMPER_TRY_STATUS(
        pieces.cut(from + "attention.out.weight", {{attention + "o_proj.weight", d}}, d));
    TEMPER_TRY_STATUS(
        pieces.cut(from + "ffn_norm.weight", {{to + "post_attention_layernorm.weight", d}}, 0));
    TEMPER_TRY_STATUS(
        pieces.cut(from + "ffn.gate_up.weight",
                   {{to + "mlp.gate_proj.weight", m.ffn}, {to + "mlp.up_proj.weight", m.ffn}},
                   d));
    TEMPER_TRY_STATUS(
        pieces.cut(from + "ffn.down.weight", {{to + "mlp.down_proj.weight", d}}, m.ffn));
  }
  TEMPER_TRY_STATUS(pieces.cut("norm.weight", {{"model.norm.weight", d}}, 0));
  TEMPER_TRY_STATUS(pieces.cut("head.weight", {{"lm_head.weight", model.vocabulary}}, d));
  return pieces.all();
}

Result<Bytes> write_tensors(const fs::path& path, const std::vector<Piece>& pieces) {
  nlohmann::json header = {{"__metadata__", {{"format", "pt"}}}};
  std::uint64_t offset = 0;
  for (const Piece& piece : pieces) {
    header[piece.name] = {{"dtype", piece.type},
                          {"shape", piece.shape},
                          {"data_offsets", {offset, offset + piece.bytes.size()}}};
    offset += piece.bytes.size();
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  const std::uint64_t length = text.size();
  TEMPER_TRY(AppendFile file, AppendFile::open(path, 0));
  TEMPER_TRY_STATUS(file.append({reinterpret_cast<const char*>(&length), sizeof length}));
  TEMPER_TRY_STATUS(file.append(text));
  for (const Piece& piece : pieces) {
    TEMPER_TRY_STATUS(
        file.append({reinterpret_cast<const char*>(piece.bytes.data()), piece.bytes.size()}));
  }
  TEMPER_TRY_STATUS(file.sync());
  return Bytes(file.size());
}

std::string config_text(const FolderModel& model) {
  const ModelConfig& m = model.shape;
  const nlohmann::json config = {{"architectures", {"LlamaForCausalLM"}},
                                 {"model_type", "llama"},
                                 {"hidden_act", "silu"},
                                 {"hidden_size", m.hidden},
                                 {"intermediate_size", m.ffn},
                                 {"num_hidden_layers", m.layers},
                                 {"num_attention_heads", m.heads},
                                 {"num_key_value_heads", m.kv_heads},
                                 {"head_dim", m.hidden / m.heads},
                                 {"rms_norm_eps", 1e-6},
                                 {"rope_theta", m.rope_base},
                                 {"vocab_size", model.vocabulary},
                                 {"max_position_embeddings", m.context.count()},
                                 {"tie_word_embeddings", false},
                                 {"torch_dtype", "float32"},
                                 {"bos_token_id", nullptr},
                                 {"eos_token_id", model.end_token}};
  return config.dump(2) + "\n";
}

}  // namespace

Result<Bytes> write_model_folder(const fs::path& folder,
                                 std::span<const std::byte> image,
                                 const FolderModel& model) {
  std::error_code ignored;
  if (fs::exists(folder / "STABLE", ignored))
    return Bytes(0);
  Header header;
  std::vector<Piece> pieces;
  if (!model.synthetic) {
    TEMPER_TRY(header, header_of(image));
    const bool fused = header.tensors.contains("embedding.weight");
    TEMPER_TRY(pieces, fused ? llama_tensors(header, model) : named_tensors(header));
  }
  const fs::path draft =
      folder.parent_path() / fmt::format(".{}-{}", folder.filename().string(), ::getpid());
  TEMPER_TRY_STATUS(make_folder(draft));
  Bytes bytes(static_cast<std::int64_t>(image.size()));
  if (model.synthetic) {
    TEMPER_TRY_STATUS(write_file_atomically(
        draft / "weights.bin", {reinterpret_cast<const char*>(image.data()), image.size()}));
  } else {
    TEMPER_TRY(bytes, write_tensors(draft / "model.safetensors", pieces));
    TEMPER_TRY_STATUS(write_file_atomically(
        draft / "config.json", model.config_json.empty() ? config_text(model) : model.config_json));
  }
  TEMPER_TRY_STATUS(write_file_atomically(draft / "STABLE", ""));
  if (const Status renamed = rename_durably(draft, folder); !renamed) {
    fs::remove_all(draft, ignored);
    if (!fs::exists(folder / "STABLE", ignored))  // Else another process was first.
      return renamed.error();
  }
  return bytes;
}

Result<std::optional<Canary>> canary_of(std::span<const std::byte> image) {
  TEMPER_TRY(const Header header, header_of(image));
  const nlohmann::json metadata = header.tensors.value("__metadata__", nlohmann::json());
  if (!metadata.is_object() || !metadata.contains(kCanaryKey) || !metadata[kCanaryKey].is_string())
    return std::optional<Canary>();
  TEMPER_TRY(Canary canary, parse_canary(metadata[kCanaryKey].get<std::string>()));
  return std::optional<Canary>(std::move(canary));
}

}  // namespace temper::actors
