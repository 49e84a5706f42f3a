#include "actors/policy/weights.hpp"

#include "actors/model_folder/stored_tensors.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/tiny_policy.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace temper::actors {
namespace {

using tests::bytes_of;

TEST(Weights, RejectsEveryTruncationOfAnImage) {
  const std::string image = tests::tiny_image();
  for (std::size_t length = 0; length < image.size(); length += 97)
    EXPECT_FALSE(Weights::from_image(tests::tiny_layout(), bytes_of(image.substr(0, length))));
  EXPECT_TRUE(Weights::from_image(tests::tiny_layout(), bytes_of(image)));
}

TEST(Weights, NamesTheTensorOfAnotherModelsWeights) {
  ModelConfig other = tests::tiny_model();
  other.ffn = 32;
  const auto layout = Layout::make(other, tests::kVocabulary).value();
  const auto loaded = Weights::from_image(layout, bytes_of(tests::tiny_image()));
  ASSERT_FALSE(loaded);
  EXPECT_NE(loaded.error().context.find("model.layers.0.mlp.gate_proj.weight"), std::string::npos)
      << loaded.error().context;
}

TEST(Weights, ReadsTheSameFromFolderAndImage) {
  const test::TemporaryFolder folder;
  const Weights weights = tests::tiny_weights();
  ConfigJson config{tests::tiny_model(), StoredType::Float32, {1}};
  config.model.vocabulary = tests::kVocabulary;
  ModelFolderToWrite what;
  what.config_json = write_config_json(config);
  ASSERT_TRUE(write_model_folder(
      folder.path(), what, tensors_to_write(weights.layout(), weights.values().span())));
  const auto opened = ModelFolder::open(folder.path());
  ASSERT_TRUE(opened) << opened.error().context;
  const auto read = Weights::from_folder(tests::tiny_layout(), *opened);
  ASSERT_TRUE(read) << read.error().context;
  EXPECT_TRUE(std::ranges::equal(read->values().span(), weights.values().span()));
}

}  // namespace
}  // namespace temper::actors
