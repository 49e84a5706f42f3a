#include "actors/model_folder/gguf.hpp"

#include "actors/model_folder/config_json.hpp"
#include "actors/model_folder/gguf_names.hpp"
#include "actors/model_folder/gguf_rows.hpp"
#include "actors/model_folder/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace temper::actors {
namespace {

constexpr std::size_t kAlign = 32;
constexpr std::uint32_t kVersion = 3, kFloat32 = 0;

/// Value types of GGUF.
enum class Type : std::uint32_t { Uint32 = 4, Int32 = 5, Float = 6, Bool = 7, Text = 8, Array = 9 };
/// Token kinds of GGUF.
constexpr std::int32_t kNormal = 1, kControl = 3;

class Writer {
 public:
  template <class T>
  void number(T value) {
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    out_.append(bytes, sizeof value);
  }
  void text(std::string_view value) {
    number(static_cast<std::uint64_t>(value.size()));
    out_.append(value);
  }
  void append(std::string_view bytes) { out_.append(bytes); }
  void align() { out_.resize((out_.size() + kAlign - 1) / kAlign * kAlign, '\0'); }
  std::size_t size() const { return out_.size(); }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

/// Key-value pairs and their number.
class Keys {
 public:
  void uint32(std::string_view key, std::int64_t value) {
    begin(key, Type::Uint32);
    out_.number(static_cast<std::uint32_t>(value));
  }
  void real(std::string_view key, double value) {
    begin(key, Type::Float);
    out_.number(static_cast<float>(value));
  }
  void flag(std::string_view key, bool value) {
    begin(key, Type::Bool);
    out_.number(static_cast<std::uint8_t>(value));
  }
  void text(std::string_view key, std::string_view value) {
    begin(key, Type::Text);
    out_.text(value);
  }
  template <class F>
  void array(std::string_view key, Type type, std::int64_t count, F&& write) {
    begin(key, Type::Array);
    out_.number(static_cast<std::uint32_t>(type));
    out_.number(static_cast<std::uint64_t>(count));
    for (std::int32_t i = 0; i < count; ++i)
      write(out_, i);
  }
  std::uint64_t count() const { return count_; }
  std::string take() { return out_.take(); }

 private:
  void begin(std::string_view key, Type type) {
    out_.text(key);
    out_.number(static_cast<std::uint32_t>(type));
    ++count_;
  }

  Writer out_;
  std::uint64_t count_ = 0;
};

Keys keys_of(const ConfigJson& config, std::int64_t vocabulary) {
  const ModelConfig& m = config.model;
  const std::string_view name = gguf_architecture(m.architecture);
  const auto own = [&](std::string_view key) { return fmt::format("{}.{}", name, key); };
  Keys keys;
  keys.text("general.architecture", name);
  keys.text("general.name", "policy");
  keys.uint32("general.alignment", kAlign);
  keys.uint32("general.file_type", kFloat32);
  keys.uint32(own("vocab_size"), vocabulary);
  keys.uint32(own("context_length"), m.context.count());
  keys.uint32(own("embedding_length"), m.hidden);
  keys.uint32(own("block_count"), m.layers);
  keys.uint32(own("feed_forward_length"), m.ffn);
  keys.uint32(own("attention.head_count"), m.heads);
  keys.uint32(own("attention.head_count_kv"), m.kv_heads);
  keys.uint32(own("attention.key_length"), m.head_size());
  keys.uint32(own("attention.value_length"), m.head_size());
  keys.uint32(own("rope.dimension_count"), m.head_size());
  keys.real(own("rope.freq_base"), m.rope_base);
  keys.real(own("attention.layer_norm_rms_epsilon"), m.norm_epsilon);
  const std::vector<std::int32_t>& ends = config.end_tokens;
  const auto is_end = [&](std::int32_t token) {
    return std::ranges::find(ends, token) != ends.end();
  };
  keys.flag(kGgufPlaceholderTokens, true);
  keys.text("tokenizer.ggml.model", "llama");
  keys.array("tokenizer.ggml.tokens", Type::Text, vocabulary, [](Writer& out, std::int32_t i) {
    out.text(fmt::format("<{}>", i));
  });
  keys.array("tokenizer.ggml.scores", Type::Float, vocabulary, [](Writer& out, std::int32_t) {
    out.number(0.0F);
  });
  keys.array("tokenizer.ggml.token_type", Type::Int32, vocabulary, [&](Writer& out, auto i) {
    out.number(is_end(i) ? kControl : kNormal);
  });
  // llama.cpp knows only these kinds of end tokens; responses are cut at the others here.
  constexpr std::array kEnds{"eos", "eot", "eom"};
  for (std::size_t i = 0; i < std::min(ends.size(), kEnds.size()); ++i)
    keys.uint32(fmt::format("tokenizer.ggml.{}_token_id", kEnds[i]), ends[i]);
  keys.uint32("tokenizer.ggml.bos_token_id", 0);
  keys.flag("tokenizer.ggml.add_bos_token", false);
  keys.flag("tokenizer.ggml.add_eos_token", false);
  keys.flag("tokenizer.ggml.add_space_prefix", false);
  return keys;
}

}  // namespace

Result<std::string> write_gguf(std::span<const std::byte> image,
                               std::string_view config_json,
                               std::span<const std::string> ignore) {
  TEMPER_TRY(const ConfigJson config, parse_config_json(config_json, ignore));
  const ModelConfig& m = config.model;
  if (m.rope_scaling) {
    return Error{ErrorCode::Unsupported,
                 "writing GGUF for a model with rope_scaling is not supported"};
  }
  TEMPER_TRY(const SafetensorsImage tensors, parse_safetensors(image));
  const auto embedding = std::ranges::find(tensors.tensors, kEmbeddingTensor, &TensorView::name);
  if (embedding == tensors.tensors.end() || embedding->shape.empty())
    return corrupt(fmt::format("the image has no tensor {}", kEmbeddingTensor));
  Writer list;
  std::size_t offset = 0;
  for (const TensorView& tensor : tensors.tensors) {
    TEMPER_TRY(const std::string name, gguf_name_of(tensor.name));
    list.text(name);
    list.number(static_cast<std::uint32_t>(tensor.shape.size()));
    std::size_t elements = 1;
    for (auto size = tensor.shape.rbegin(); size != tensor.shape.rend(); ++size) {
      list.number(static_cast<std::uint64_t>(*size));
      elements *= static_cast<std::size_t>(*size);
    }
    list.number(kFloat32);
    list.number(static_cast<std::uint64_t>(offset));
    offset += (elements * sizeof(float) + kAlign - 1) / kAlign * kAlign;
  }
  Keys keys = keys_of(config, embedding->shape.front());
  Writer out;
  out.append("GGUF");
  out.number(kVersion);
  out.number(static_cast<std::uint64_t>(tensors.tensors.size()));
  out.number(keys.count());
  out.append(keys.take());
  out.append(list.take());
  out.align();
  for (const TensorView& tensor : tensors.tensors) {
    std::size_t elements = 1;
    for (const std::int64_t size : tensor.shape)
      elements *= static_cast<std::size_t>(size);
    std::vector<float> values(elements);
    copy_values(tensor, values);
    const bool turned =
        tensor.name.ends_with("q_proj.weight") || tensor.name.ends_with("k_proj.weight");
    if (turned && m.architecture == Architecture::Llama) {
      if (tensor.shape.size() != 2 || tensor.shape.front() % m.head_size() != 0)
        return corrupt(
            fmt::format("{}: the rows are not a multiple of the head size", tensor.name));
      pair_halves(values, tensor.shape.front(), m.head_size());
    }
    out.append({reinterpret_cast<const char*>(values.data()), elements * sizeof(float)});
    out.align();
  }
  return out.take();
}

}  // namespace temper::actors
