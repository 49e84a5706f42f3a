#include "actors/model_folder/gguf_reader.hpp"

#include "actors/model_folder/config_json.hpp"
#include "actors/model_folder/gguf.hpp"
#include "actors/model_folder/gguf_tokenizer.hpp"
#include "actors/model_folder/model_folder.hpp"
#include "actors/model_folder/stored_tensors.hpp"
#include "core/files.hpp"
#include "tests/support/gguf_bytes.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

namespace temper::actors {
namespace {

using test::GgufBytes;
using test::TemporaryFolder;
using testing::Test;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

Result<GgufFile> parse(const std::string& file) {
  return GgufFile::parse(bytes_of(file), file.size());
}

std::vector<float> values_of(GgufType type, std::size_t count, const std::string& bytes) {
  std::vector<float> values(count);
  dequantize(type, bytes_of(bytes), values);
  return values;
}

std::string halves(std::initializer_list<std::uint16_t> values) {
  std::string bytes;
  for (const std::uint16_t value : values)
    bytes += GgufBytes::bytes_of(value);
  return bytes;
}

constexpr std::uint16_t kHalfOne = 0x3c00, kHalfTwo = 0x4000, kHalfMinusHalf = 0xb800;

TEST(Dequantize, ReadsHalfPrecision) {
  const auto values = values_of(
      GgufType::Float16, 7, halves({0x3c00, 0xc000, 0x3555, 0x0001, 0x8000, 0x7bff, 0x7c00}));
  EXPECT_EQ(values[0], 1.0F);
  EXPECT_EQ(values[1], -2.0F);
  EXPECT_EQ(values[2], 0.333251953125F);
  EXPECT_EQ(values[3], 0x1p-24F) << "the smallest subnormal";
  EXPECT_TRUE(values[4] == 0 && std::signbit(values[4]));
  EXPECT_EQ(values[5], 65504.0F);
  EXPECT_TRUE(std::isinf(values[6]));
}

TEST(Dequantize, ReadsBfloat16AndFloat32) {
  EXPECT_EQ(values_of(GgufType::Bfloat16, 2, halves({0x3f80, 0xc049})),
            (std::vector<float>{1.0F, -3.140625F}));
  EXPECT_EQ(values_of(GgufType::Float32, 2, GgufBytes::bytes_of(1.5F, -7.0F)),
            (std::vector<float>{1.5F, -7.0F}));
}

/// Byte i holds value i in its low half and value i + 16 in its high half.
std::string nibbles() {
  std::string bytes;
  for (int i = 0; i < 16; ++i)
    bytes += static_cast<char>(i | (15 - i) << 4);
  return bytes;
}

TEST(Dequantize, ReadsFourBitsAroundZero) {
  const auto values = values_of(GgufType::Q4_0, 32, GgufBytes::bytes_of(kHalfTwo) + nibbles());
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(values[static_cast<std::size_t>(i)], 2.0F * static_cast<float>(i - 8));
    EXPECT_EQ(values[static_cast<std::size_t>(i + 16)], 2.0F * static_cast<float>(7 - i));
  }
}

TEST(Dequantize, ReadsFourBitsAboveAMinimum) {
  const auto values =
      values_of(GgufType::Q4_1, 32, GgufBytes::bytes_of(kHalfTwo, kHalfMinusHalf) + nibbles());
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(values[static_cast<std::size_t>(i)], 2.0F * static_cast<float>(i) - 0.5F);
    EXPECT_EQ(values[static_cast<std::size_t>(i + 16)], 2.0F * static_cast<float>(15 - i) - 0.5F);
  }
}

TEST(Dequantize, ReadsEightBits) {
  std::string bytes;
  for (int block = 0; block < 2; ++block) {
    bytes += GgufBytes::bytes_of(block == 0 ? kHalfOne : kHalfMinusHalf);
    for (int i = 0; i < 32; ++i)
      bytes += static_cast<char>(8 * (i - 16));
  }
  const auto values = values_of(GgufType::Q8_0, 64, bytes);
  for (int i = 0; i < 32; ++i) {
    EXPECT_EQ(values[static_cast<std::size_t>(i)], static_cast<float>(8 * (i - 16)));
    EXPECT_EQ(values[static_cast<std::size_t>(i + 32)], static_cast<float>(-4 * (i - 16)));
  }
}

ModelConfig small_model(Architecture architecture, bool tied) {
  ModelConfig model;
  model.hidden = 8;
  model.layers = 2;
  model.heads = 2;
  model.kv_heads = 1;
  model.ffn = 8;
  model.context = Tokens(16);
  model.architecture = architecture;
  model.tie_embeddings = tied;
  model.vocabulary = 5;
  model.head_dim = 4;
  model.norm_epsilon = 1e-5;
  return model;
}

/// Weights in which no two values are equal.
std::vector<float> weights_of(const Layout& layout, float scale) {
  std::vector<float> flat(static_cast<std::size_t>(layout.size()));
  for (std::size_t i = 0; i < flat.size(); ++i)
    flat[i] = static_cast<float>(i) * scale;
  return flat;
}

std::string written(const Layout& layout, const std::vector<float>& flat) {
  const ConfigJson config{.model = layout.model(), .end_tokens = {1, 4}};
  const std::string image = write_safetensors(tensors_to_write(layout, flat), {});
  return write_gguf(bytes_of(image), write_config_json(config)).value();
}

class ConvertedGguf : public Test {
 protected:
  Status convert(const std::string& bytes) {
    std::ofstream(file()) << bytes;
    return convert_gguf(file(), to_.path());
  }
  std::string error(const std::string& bytes) {
    const Status status = convert(bytes);
    return status ? "" : status.error().context;
  }
  std::string file() const { return (from_ / "model.gguf").string(); }
  const TemporaryFolder& folder() const { return to_; }

 private:
  TemporaryFolder from_, to_;
};

TEST_F(ConvertedGguf, HasTheWeightsThatWereWritten) {
  for (const auto architecture : {Architecture::Llama, Architecture::Qwen2, Architecture::Qwen3}) {
    for (const bool tied : {false, true}) {
      const Layout layout = Layout::make(small_model(architecture, tied), 0).value();
      const std::vector<float> flat = weights_of(layout, 0.001F);
      const Status status = convert(written(layout, flat));
      ASSERT_TRUE(status) << status.error().context;
      const ModelFolder read = ModelFolder::open(folder().path()).value();
      EXPECT_EQ(read.model(), layout.model());
      EXPECT_EQ(read.type(), StoredType::Float32);
      EXPECT_EQ(read.end_tokens(), (std::vector<std::int32_t>{1, 4}));
      EXPECT_FALSE(read.has_tokenizer()) << "the file has placeholder tokens";
      const Status checked = read.check(layout);
      EXPECT_TRUE(checked) << checked.error().context;
      std::vector<float> back(flat.size());
      ASSERT_TRUE(read.read(tensors_to_read(layout, back)));
      for (const TensorSpec& t : layout.stored()) {
        for (auto i = t.offset; i < t.offset + t.elements(); ++i)
          ASSERT_EQ(back[static_cast<std::size_t>(i)], flat[static_cast<std::size_t>(i)]) << t.name;
      }
    }
  }
}

TEST_F(ConvertedGguf, StaysBfloat16IfThatIsExact) {
  const Layout layout = Layout::make(small_model(Architecture::Llama, false), 0).value();
  std::vector<float> flat = weights_of(layout, 1);
  for (float& value : flat)
    value = to_float(to_bfloat16(value));
  ASSERT_TRUE(convert(written(layout, flat)));
  EXPECT_EQ(ModelFolder::open(folder().path())->type(), StoredType::Bfloat16);
  std::vector<float> back(flat.size());
  ASSERT_TRUE(ModelFolder::open(folder().path())->read(tensors_to_read(layout, back)));
  EXPECT_EQ(back[5], flat[5]);
}

TEST_F(ConvertedGguf, RejectsEveryTruncatedFile) {
  const Layout layout = Layout::make(small_model(Architecture::Llama, true), 0).value();
  const std::string whole = written(layout, weights_of(layout, 1));
  for (std::size_t size = 0; size + 32 < whole.size(); size += size < 64 ? 1 : 7)
    EXPECT_NE(error(whole.substr(0, size)), "") << size;
}

/// What is read must be a model; which one does not matter here.
TEST_F(ConvertedGguf, SurvivesEveryChangedByteOfTheMetadata) {
  const Layout layout = Layout::make(small_model(Architecture::Llama, true), 0).value();
  const std::string whole = written(layout, weights_of(layout, 1));
  for (std::size_t i = 0; i < whole.find("token_embd") + 800; ++i) {
    for (const char mask : {'\x01', '\x80', '\xff'}) {
      std::string changed = whole;
      changed[i] = static_cast<char>(changed[i] ^ mask);
      const auto parsed = parse(changed);
      if (parsed && read_gguf_config(*parsed))
        std::ignore = read_gguf_tokenizer(*parsed);
    }
  }
}

TEST(Gguf, RejectsCountsAndLengthsThatDoNotFit) {
  const auto rejected = [](const std::string& bytes) {
    const auto parsed = parse(bytes);
    return parsed ? std::string() : parsed.error().context;
  };
  using B = GgufBytes;
  const std::string magic = "GGUF" + B::bytes_of(std::uint32_t{3});
  constexpr std::uint64_t kHuge = ~std::uint64_t{0};
  const std::string no_tensors = magic + B::bytes_of(std::uint64_t{0});
  EXPECT_NE(rejected(magic + B::bytes_of(kHuge, kHuge)).find("tensors do not fit"),
            std::string::npos);
  EXPECT_NE(rejected(no_tensors + B::bytes_of(kHuge)).find("keys do not fit"), std::string::npos);
  const std::string one_key = no_tensors + B::bytes_of(std::uint64_t{1});
  const std::string filler(64, 'x');
  EXPECT_NE(rejected(one_key + B::bytes_of(kHuge) + filler).find("key 0"), std::string::npos);
  const std::string named = one_key + B::bytes_of(std::uint64_t{1}) + "k";
  EXPECT_NE(rejected(named + B::bytes_of(std::uint32_t{77}) + filler).find("value type"),
            std::string::npos);
  const std::string list = named + B::bytes_of(std::uint32_t{9});
  EXPECT_NE(rejected(list + B::bytes_of(std::uint32_t{8}, kHuge) + filler).find("do not fit"),
            std::string::npos);
  EXPECT_NE(rejected(list + B::bytes_of(std::uint32_t{9}, kHuge) + filler).find("list of lists"),
            std::string::npos);
  EXPECT_NE(rejected("GGUF" + B::bytes_of(std::uint32_t{1}) + filler).find("version"),
            std::string::npos);
  EXPECT_NE(rejected("PK" + filler).find("not a GGUF file"), std::string::npos);
}

TEST(Gguf, RejectsTensorsThatOverlapOrExceedTheFile) {
  const std::string data(64, '\0');
  const auto rejected = [&](const std::vector<std::uint64_t>& sizes, std::uint32_t type) {
    GgufBytes file;
    file.tensor("a", sizes, type, data);
    const auto parsed = parse(file.file());
    return parsed ? std::string() : parsed.error().context;
  };
  EXPECT_EQ(rejected({4, 4}, 0), "");
  EXPECT_NE(rejected({4, 5}, 0).find("tensor 'a'"), std::string::npos) << "80 of 64 bytes";
  EXPECT_NE(rejected({1U << 30, 1U << 30}, 0).find("out of range"), std::string::npos);
  EXPECT_NE(rejected({0}, 0).find("out of range"), std::string::npos);
  EXPECT_NE(rejected({}, 0).find("dimensions"), std::string::npos);
  EXPECT_NE(rejected({16}, 2).find("multiple of 32"), std::string::npos);
  EXPECT_NE(rejected({16}, 14).find("type 14"), std::string::npos) << "Q6_K";
  GgufBytes twice;
  twice.tensor("a", {4}, 0, data).tensor("a", {4}, 0, data);
  EXPECT_NE(parse(twice.file()).error().context.find("found twice"), std::string::npos);
}

/// The metadata of a model without layers, for what is rejected before tensors are read.
GgufBytes metadata(std::string_view architecture = "llama") {
  GgufBytes file;
  const auto own = [&](std::string_view key) {
    return std::string(architecture) + "." + std::string(key);
  };
  file.text("general.architecture", architecture)
      .uint32(own("block_count"), 1)
      .uint32(own("context_length"), 16)
      .uint32(own("embedding_length"), 8)
      .uint32(own("feed_forward_length"), 8)
      .uint32(own("attention.head_count"), 2)
      .real(own("attention.layer_norm_rms_epsilon"), 1e-5F)
      .tensor("token_embd.weight", {8, 5}, 0, std::string(160, '\0'));
  return file;
}

TEST_F(ConvertedGguf, NamesWhatIsNotSupported) {
  EXPECT_NE(
      error(metadata("gemma2").file()).find("expected one of llama, qwen2, qwen3, found gemma2"),
      std::string::npos);
  EXPECT_NE(error(metadata().uint32("llama.expert_count", 8).file()).find("llama.expert_count"),
            std::string::npos);
  EXPECT_NE(error(metadata().text("llama.rope.scaling.type", "yarn").file())
                .find("llama.rope.scaling.type"),
            std::string::npos);
  EXPECT_NE(error(metadata().text("tokenizer.ggml.model", "t5").file())
                .find("'tokenizer.ggml.model': expected gpt2"),
            std::string::npos);
  EXPECT_NE(error(metadata()
                      .text("tokenizer.ggml.model", "gpt2")
                      .text("tokenizer.ggml.pre", "tekken")
                      .texts("tokenizer.ggml.tokens", {"a"})
                      .file())
                .find("found tekken"),
            std::string::npos);
  const std::string missing = error(metadata().file());
  EXPECT_NE(missing.find("model.gguf: tensor 'blk.0."), std::string::npos) << missing;
}

TEST_F(ConvertedGguf, RejectsRopeFactorsByName) {
  const Layout layout = Layout::make(small_model(Architecture::Llama, true), 0).value();
  GgufBytes file = metadata();
  file.uint32("llama.attention.head_count_kv", 1);
  const std::string whole = written(layout, weights_of(layout, 1));
  const GgufFile parsed = parse(whole).value();
  GgufBytes copy;
  copy.text("general.architecture", "llama")
      .uint32("llama.block_count", 2)
      .uint32("llama.context_length", 16)
      .uint32("llama.embedding_length", 8)
      .uint32("llama.feed_forward_length", 8)
      .uint32("llama.attention.head_count", 2)
      .uint32("llama.attention.head_count_kv", 1)
      .real("llama.attention.layer_norm_rms_epsilon", 1e-5F);
  for (const auto& [name, tensor] : parsed.tensors()) {
    const std::vector<std::uint64_t> sizes(tensor.shape.rbegin(), tensor.shape.rend());
    copy.tensor(name, sizes, 0, whole.substr(tensor.begin, tensor.bytes));
  }
  EXPECT_EQ(error(copy.file()), "");
  copy.tensor("rope_freqs.weight", {2}, 0, std::string(8, '\0'));
  EXPECT_NE(error(copy.file()).find("tensor 'rope_freqs.weight'"), std::string::npos);
}

}  // namespace
}  // namespace temper::actors
