#include "cli/serve/page_token.hpp"

#include "core/files.hpp"
#include "core/secret.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

namespace temper::cli {
namespace {

namespace fs = std::filesystem;

class PageToken : public testing::Test {
 protected:
  void write(const std::string& text, mode_t mode = 0600) {
    ASSERT_TRUE(write_file_atomically(file_, text));
    ASSERT_EQ(::chmod(file_.c_str(), mode), 0);
  }
  ErrorCode refusal() const {
    const auto token = token_in(file_);
    EXPECT_FALSE(token);
    return token ? ErrorCode::Internal : token.error().code;
  }
  const test::TemporaryFolder folder_;
  const fs::path file_ = folder_ / "token";
};

TEST_F(PageToken, IsMadeOnceForItsOwnerAlone) {
  const std::string first = token_in(file_).value();
  EXPECT_EQ(first.size(), 32U);
  EXPECT_EQ(token_in(file_).value(), first);
  struct stat info {};
  ASSERT_EQ(::stat(file_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
}

TEST_F(PageToken, IsTakenAsTheUserWroteIt) {
  for (const std::string text :
       {"0123456789abcdef", "A-Token_of.the~user\n", "0123456789abcdef\r\n"}) {
    write(text);
    EXPECT_EQ(token_in(file_).value(), text.substr(0, text.find_first_of("\r\n")));
  }
}

TEST_F(PageToken, IsRefusedWhereItIsNoneOrOthersKnowIt) {
  for (const std::string& text : {std::string(),
                                  std::string("\n"),
                                  std::string("0123456789abcde"),
                                  std::string("0123456789abcdef 0123456789abcdef"),
                                  std::string("0123456789abcdef\n0123456789abcdef\n"),
                                  std::string("0123456789abcdef;x"),
                                  std::string("0123456789abcdef&x"),
                                  std::string("0123456789abcdef%20"),
                                  std::string("0123456789abcdef\0x", 18),
                                  std::string("0123456789abcdef\xc3\xa4"),
                                  std::string(257, 'a'),
                                  std::string(1 << 20, 'a')}) {
    write(text);
    EXPECT_EQ(refusal(), ErrorCode::InvalidInput) << text.substr(0, 40);
  }
  for (const mode_t mode : {0640U, 0604U, 0644U, 0660U, 0666U, 0610U, 0601U}) {
    write("0123456789abcdef", mode);
    EXPECT_EQ(refusal(), ErrorCode::InvalidInput) << mode;
  }
  fs::remove(file_);
  ASSERT_EQ(::mkfifo(file_.c_str(), 0600), 0);
  EXPECT_EQ(refusal(), ErrorCode::InvalidInput);
  fs::remove(file_);
  fs::create_directory(file_);
  EXPECT_EQ(refusal(), ErrorCode::InvalidInput);
  fs::remove(file_);
  fs::create_symlink("/nowhere/x", file_);
  EXPECT_NE(refusal(), ErrorCode::Internal);
}

TEST(Secrets, AreEqualOnlyAsAWhole) {
  const std::string secret = make_secret();
  EXPECT_EQ(secret.size(), 32U);
  EXPECT_NE(make_secret(), secret);
  EXPECT_TRUE(is_same_secret(secret, secret));
  EXPECT_FALSE(is_same_secret(secret, secret.substr(1)));
  EXPECT_FALSE(is_same_secret(secret, secret + secret));
  EXPECT_FALSE(is_same_secret("", ""));
  EXPECT_FALSE(is_same_secret(secret, ""));
  EXPECT_FALSE(is_same_secret("", secret));
}

}  // namespace
}  // namespace temper::cli
