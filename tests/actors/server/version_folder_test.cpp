#include "actors/server/version_folder.hpp"

#include "actors/model_folder/adapter_folder.hpp"
#include "core/files.hpp"
#include "tests/support/fake_server.hpp"
#include "tests/support/temporary_folder.hpp"

#include <cstring>

namespace temper::test {
namespace {

using actors::write_version_folder;

std::span<const std::byte> bytes_of(const std::string& image) {
  return std::as_bytes(std::span(image));
}

TEST(VersionFolder, HasTheLayoutOfALlamaModelAndAStableMark) {
  const TemporaryFolder folder;
  const std::string image = Table(1).image();
  const auto written = write_version_folder(folder / "v1", bytes_of(image), table_model());
  ASSERT_TRUE(written) << written.error().context;
  EXPECT_TRUE(std::filesystem::exists(folder / "v1/STABLE"));
  const auto config = parse_json(read_file(folder / "v1/config.json").value());
  EXPECT_EQ(config["architectures"][0], "LlamaForCausalLM");
  EXPECT_EQ(config["vocab_size"], kTableTokens);

  const std::string file = read_file(folder / "v1/model.safetensors").value();
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  const auto header = parse_json(std::string_view(file).substr(8, length));
  EXPECT_EQ(header["model.embed_tokens.weight"]["shape"], (std::vector<int>{kTableTokens, 16}));
  EXPECT_EQ(header["model.layers.0.self_attn.q_proj.weight"]["shape"], (std::vector<int>{16, 16}));
  EXPECT_EQ(header["model.layers.0.self_attn.k_proj.weight"]["shape"], (std::vector<int>{8, 16}));
  EXPECT_EQ(header["model.layers.0.mlp.up_proj.weight"]["shape"], (std::vector<int>{16, 16}));
  EXPECT_EQ(header["model.norm.weight"]["shape"], (std::vector<int>{16}));
}

TEST(VersionFolder, HasThePublishedImageUnchanged) {
  const TemporaryFolder folder;
  const std::string image = Table(1).image();
  ASSERT_TRUE(write_version_folder(folder / "v1", bytes_of(image), table_model()));
  EXPECT_EQ(read_file(folder / "v1/model.safetensors").value(), image);
}

TEST(VersionFolder, OfAnAdapterIsWhatPeftReads) {
  const TemporaryFolder folder;
  const std::string image = Table(1).image();  // Any tensors: only a server looks at the names.
  actors::FolderModel model = table_model();
  model.shape.lora = actors::LoraConfig{.rank = 4, .alpha = 8, .targets = {"q_proj"}};
  ASSERT_TRUE(write_version_folder(folder / "v1", bytes_of(image), model));
  EXPECT_EQ(read_file(folder / "v1/adapter_model.safetensors").value(), image);
  const auto config = actors::read_adapter_config(folder / "v1");
  ASSERT_TRUE(config) << config.error().context;
  EXPECT_EQ(config->lora, *model.shape.lora);
  EXPECT_FALSE(std::filesystem::exists(folder / "v1/config.json"));
}

TEST(VersionFolder, IsWrittenOnce) {
  const TemporaryFolder folder;
  const std::string image = Table(1).image();
  EXPECT_GT(write_version_folder(folder / "v1", bytes_of(image), table_model()).value(), Bytes(0));
  EXPECT_EQ(write_version_folder(folder / "v1", bytes_of(image), table_model()).value(), Bytes(0));
}

TEST(VersionFolder, RejectsATruncatedImage) {
  const TemporaryFolder folder;
  const std::string image = Table(1).image();
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{7}, std::size_t{100}, image.size() - 1})
    EXPECT_FALSE(write_version_folder(folder / "v1", bytes_of(image).first(size), table_model()));
}

TEST(Canary, IsInTheMetadataOfTheImage) {
  const std::string with = Table(3).image(), without = Table(3).image(false);
  EXPECT_EQ(actors::canary_of(bytes_of(with)).value(), Table(3).canary());
  EXPECT_FALSE(actors::canary_of(bytes_of(without)).value().has_value());
}

TEST(Canary, IsTheSameSequenceEverywhere) {
  EXPECT_EQ(actors::canary_tokens(14, Tokens(32)), actors::canary_tokens(14, Tokens(32)));
  EXPECT_EQ(actors::canary_tokens(14, Tokens(1000)).size(), 32U);
  EXPECT_EQ(actors::canary_tokens(14, Tokens(10)).size(), 9U);
  for (const std::int32_t token : actors::canary_tokens(14, Tokens(1000)))
    EXPECT_TRUE(token >= 2 && token < 14);
}

TEST(Canary, RejectsInvalidText) {
  for (const char* const text : {"",
                                 "{}",
                                 R"({"tokens":[1,2],"logprobs":[]})",
                                 R"({"tokens":[1],"logprobs":[]})",
                                 R"({"tokens":["a",2],"logprobs":[0]})"})
    EXPECT_FALSE(actors::parse_canary(text)) << text;
}

}  // namespace
}  // namespace temper::test
