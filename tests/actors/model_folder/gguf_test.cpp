// Reads our GGUF files according to the format's specification (ggml-org/ggml docs/gguf.md).
#include "actors/model_folder/gguf.hpp"

#include "actors/model_folder/config_json.hpp"
#include "actors/model_folder/layout.hpp"
#include "actors/model_folder/stored_tensors.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <numeric>

namespace temper::actors {
namespace {

constexpr std::int32_t kVocabulary = 5;

ModelConfig model_of(Architecture architecture) {
  ModelConfig model;
  model.hidden = 8;
  model.layers = 1;
  model.heads = 2;
  model.kv_heads = 1;
  model.ffn = 8;
  model.context = Tokens(16);
  model.architecture = architecture;
  return model;
}

/// A parsed file: the parts that the tests use.
class Gguf {
 public:
  explicit Gguf(const std::string& file) : file_(file) {
    EXPECT_EQ(take(4), "GGUF");
    EXPECT_EQ(number<std::uint32_t>(), 3U);
    const auto count = number<std::uint64_t>();
    const auto keys = number<std::uint64_t>();
    for (std::uint64_t i = 0; i < keys; ++i) {
      const std::string key = text();
      read_value(key, number<std::uint32_t>());
    }
    std::map<std::string, std::uint64_t> offsets;
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::string name = text();
      sizes_[name].resize(number<std::uint32_t>());
      for (std::uint64_t& size : sizes_[name])
        size = number<std::uint64_t>();
      EXPECT_EQ(number<std::uint32_t>(), 0U) << "float32";
      offsets[name] = number<std::uint64_t>();
    }
    const std::size_t begin = (at_ + 31) / 32 * 32;
    for (const auto& [name, offset] : offsets) {
      EXPECT_EQ(offset % 32, 0U);
      at_ = begin + offset;
      std::uint64_t elements = 1;
      for (const std::uint64_t size : sizes_[name])
        elements *= size;
      for (std::uint64_t i = 0; i < elements; ++i)
        tensors_[name].push_back(number<float>());
    }
  }

  double value(const std::string& key) const { return numbers_.at(key); }
  bool has(const std::string& key) const { return numbers_.contains(key); }
  const std::vector<std::string>& tokens() const { return tokens_; }
  const std::vector<float>& tensor(const std::string& name) const { return tensors_.at(name); }
  const std::vector<std::uint64_t>& sizes(const std::string& name) const { return sizes_.at(name); }
  std::size_t count() const { return tensors_.size(); }

 private:
  std::string take(std::size_t n) {
    EXPECT_LE(at_ + n, file_.size());
    at_ += n;
    return file_.substr(at_ - n, n);
  }
  template <class T>
  T number() {
    T value{};
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string text() { return take(number<std::uint64_t>()); }
  void read_value(const std::string& key, std::uint32_t type) {
    switch (type) {
      case 4:
        numbers_[key] = number<std::uint32_t>();
        break;
      case 5:
        numbers_[key] = number<std::int32_t>();
        break;
      case 6:
        numbers_[key] = number<float>();
        break;
      case 7:
        numbers_[key] = number<std::uint8_t>();
        break;
      case 8:
        tokens_.push_back(text());
        break;
      case 9: {
        const auto of = number<std::uint32_t>();
        const auto count = number<std::uint64_t>();
        tokens_.clear();
        for (std::uint64_t i = 0; i < count; ++i)
          read_value(key + std::to_string(i), of);
        if (of == 8)
          kept_ = tokens_;
        tokens_ = kept_;
        break;
      }
      default:
        ADD_FAILURE() << key << " of type " << type;
    }
  }

  const std::string& file_;
  std::size_t at_ = 0;
  std::map<std::string, double> numbers_;
  std::vector<std::string> tokens_, kept_;
  std::map<std::string, std::vector<std::uint64_t>> sizes_;
  std::map<std::string, std::vector<float>> tensors_;
};

/// Weights in which float i of the flat array is i.
std::string written(const ModelConfig& model) {
  const Layout layout = Layout::make(model, kVocabulary).value();
  std::vector<float> flat(static_cast<std::size_t>(layout.size()));
  std::iota(flat.begin(), flat.end(), 0.0F);
  ConfigJson config{.model = layout.model(), .end_tokens = {1, 4}};
  config.model.vocabulary = layout.vocabulary();
  config.model.head_dim = layout.head_dim();
  const std::string image = write_safetensors(tensors_to_write(layout, flat), {});
  auto file = write_gguf(std::as_bytes(std::span(image)), write_config_json(config));
  EXPECT_TRUE(file) << file.error().context;
  return *std::move(file);
}

/// The first value of each row.
std::vector<float> rows_of(const Gguf& file, const std::string& name) {
  const std::vector<float>& values = file.tensor(name);
  std::vector<float> rows;
  for (std::size_t i = 0; i < values.size(); i += file.sizes(name).at(0))
    rows.push_back(values[i]);
  return rows;
}

TEST(Gguf, HasTheShapeOfTheModelAndPlaceholderTokens) {
  const std::string bytes = written(model_of(Architecture::Llama));
  const Gguf file(bytes);
  EXPECT_EQ(file.value("llama.embedding_length"), 8);
  EXPECT_EQ(file.value("llama.block_count"), 1);
  EXPECT_EQ(file.value("llama.attention.head_count"), 2);
  EXPECT_EQ(file.value("llama.attention.head_count_kv"), 1);
  EXPECT_EQ(file.value("llama.rope.dimension_count"), 4);
  EXPECT_EQ(file.value("llama.rope.freq_base"), 10000);
  EXPECT_EQ(file.value("llama.vocab_size"), kVocabulary);
  EXPECT_EQ(file.tokens(), (std::vector<std::string>{"<0>", "<1>", "<2>", "<3>", "<4>"}));
  EXPECT_EQ(file.value("tokenizer.ggml.eos_token_id"), 1);
  EXPECT_EQ(file.value("tokenizer.ggml.eot_token_id"), 4);
  EXPECT_EQ(file.value("tokenizer.ggml.token_type1"), 3) << "a control token";
  EXPECT_EQ(file.value("tokenizer.ggml.token_type2"), 1) << "a normal token";
  EXPECT_EQ(file.value("tokenizer.ggml.add_bos_token"), 0);
}

TEST(Gguf, HasEveryTensorWithItsSizesInnermostFirst) {
  const std::string bytes = written(model_of(Architecture::Llama));
  const Gguf file(bytes);
  EXPECT_EQ(file.count(), 12U);
  EXPECT_EQ(file.sizes("token_embd.weight"), (std::vector<std::uint64_t>{8, 5}));
  EXPECT_EQ(file.sizes("blk.0.attn_k.weight"), (std::vector<std::uint64_t>{8, 4}));
  EXPECT_EQ(file.sizes("output_norm.weight"), std::vector<std::uint64_t>{8});
  EXPECT_EQ(file.tensor("token_embd.weight").at(7), 7.0F);
}

/// Heads have 4 rows: rows 0 1 2 3 are rotated as (0 2) (1 3), so they become 0 2 1 3.
TEST(Gguf, ReordersRotatedRowsForLlama) {
  const std::string bytes = written(model_of(Architecture::Llama));
  const Gguf file(bytes);
  const std::vector<float> q = rows_of(file, "blk.0.attn_q.weight");
  const float first = q.at(0);
  std::vector<float> places;
  for (const float row : q)
    places.push_back((row - first) / 8);
  EXPECT_EQ(places, (std::vector<float>{0, 2, 1, 3, 4, 6, 5, 7}));
  const std::vector<float> v = rows_of(file, "blk.0.attn_v.weight");
  EXPECT_EQ(v.at(1) - v.at(0), 8.0F);
}

TEST(Gguf, KeepsTheRowOrderForQwen) {
  const std::string bytes = written(model_of(Architecture::Qwen2));
  const Gguf file(bytes);
  const std::vector<float> q = rows_of(file, "blk.0.attn_q.weight");
  EXPECT_EQ(q.at(1) - q.at(0), 8.0F);
  EXPECT_EQ(file.sizes("blk.0.attn_q.bias"), std::vector<std::uint64_t>{8});
  EXPECT_TRUE(file.has("qwen2.block_count"));
}

TEST(Gguf, RejectsUnsupportedModels) {
  const std::string config = R"({"architectures": ["BertModel"]})";
  const std::string image = write_safetensors({}, {});
  EXPECT_FALSE(write_gguf(std::as_bytes(std::span(image)), config));
}

}  // namespace
}  // namespace temper::actors
