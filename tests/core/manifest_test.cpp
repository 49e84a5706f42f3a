// Manifests round-trip, and any changed byte is detected.
#include "core/manifest.hpp"

#include "core/files.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

namespace temper {
namespace {

namespace fs = std::filesystem;

class ManifestTest : public ::testing::Test {
 protected:
  ManifestTest() {
    EXPECT_TRUE(make_folder(root() / "layers"));
    EXPECT_TRUE(write_file_atomically(root() / "model with a name", "weights"));
    EXPECT_TRUE(write_file_atomically(root() / "layers" / "1", std::string(3'000'000, 'x')));
  }
  const fs::path& root() const { return folder_.path(); }
  Manifest made() const { return {{{"version", 40}, {"zero", 0}}, sum_folder(root()).value()}; }

 private:
  test::TemporaryFolder folder_;
};

TEST_F(ManifestTest, ReadsBackEqual) {
  const Manifest manifest = made();
  ASSERT_EQ(manifest.files.size(), 2U);
  EXPECT_EQ(manifest.files[0].name, "layers/1");
  EXPECT_EQ(manifest.find("model with a name")->bytes, 7);
  ASSERT_TRUE(write_manifest(root() / "m", manifest));
  EXPECT_EQ(read_manifest(root() / "m").value(), manifest);
}

TEST_F(ManifestTest, DetectsAnyChangedByteOrLength) {
  const std::string text = to_text(made());
  for (std::size_t i = 0; i < text.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string other = text;
      other[i] = static_cast<char>(other[i] ^ (1 << bit));
      ASSERT_FALSE(parse_manifest(other)) << "byte " << i;
    }
    ASSERT_FALSE(parse_manifest(text.substr(0, i)));
  }
  EXPECT_FALSE(parse_manifest(text + "\n"));
  EXPECT_TRUE(parse_manifest(text));
}

TEST_F(ManifestTest, NamesAChangedFile) {
  const Manifest manifest = made();
  ASSERT_TRUE(write_manifest(root() / kFolderManifest, manifest));
  EXPECT_TRUE(check_folder(root()));
  ASSERT_TRUE(write_file_atomically(root() / "model with a name", "weighty"));
  const auto changed = check_folder(root());
  ASSERT_FALSE(changed);
  EXPECT_EQ(changed.error().code, ErrorCode::Corrupt);
  EXPECT_NE(changed.error().context.find("model with a name is damaged"), std::string::npos);
  fs::remove(root() / "model with a name");
  EXPECT_NE(check_folder(root()).error().context.find("is missing"), std::string::npos);
}

TEST(Hash128, IsTheSameInPieces) {
  Hasher128 hasher;
  for (const char* piece : {"a", "", "bcd", "e"})
    hasher.add(piece);
  EXPECT_EQ(hasher.digest(), hash128("abcde"));
  EXPECT_EQ(to_text(hash128("")), "99aa06d3014798d86001c324468d497f") << "as XXH3-128 has it";
}

}  // namespace
}  // namespace temper
