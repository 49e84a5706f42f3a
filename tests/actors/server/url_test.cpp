#include "actors/server/url.hpp"

#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <fstream>

namespace temper::actors {
namespace {

TEST(Url, ReadsHostPortAndPrefix) {
  EXPECT_EQ(parse_url("http://gpu-1:8000").value(), (Url{"gpu-1", 8000, ""}));
  EXPECT_EQ(parse_url("http://gpu-1").value(), (Url{"gpu-1", 80, ""}));
  EXPECT_EQ(parse_url("http://10.0.0.1:1/a/b/").value(), (Url{"10.0.0.1", 1, "/a/b"}));
  EXPECT_EQ(parse_url("http://[::1]:9").value(), (Url{"::1", 9, ""}));
  EXPECT_EQ(text_of({"::1", 9, "/x"}), "http://[::1]:9/x");
}

TEST(Url, RefusesWhatIsNoAddress) {
  for (const char* const text : {"",
                                 "gpu-1:8000",
                                 "https://gpu-1",
                                 "http://",
                                 "http://:80",
                                 "http://a:b",
                                 "http://a:0",
                                 "http://a:70000",
                                 "http://a:80x"})
    EXPECT_FALSE(parse_url(text)) << text;
}

TEST(FindServer, TakesTheEntryOfTheReplica) {
  const std::vector<std::string> entries{"http://a:1", "http://b:2"};
  EXPECT_EQ(find_server(entries, 1).value().host, "b");
  EXPECT_FALSE(find_server(entries, 2));
}

TEST(FindServer, ReadsAFileAnewEachTimeAndSaysThatALineMayYetCome) {
  const test::TemporaryFolder folder;
  const std::vector<std::string> entries{"file:" + (folder / "servers").string()};
  EXPECT_EQ(find_server(entries, 0).error().code, ErrorCode::Unavailable);
  std::ofstream(folder / "servers") << "# gpus\n\n  http://a:1\r\n";
  EXPECT_EQ(find_server(entries, 0).value(), (Url{"a", 1, ""}));
  EXPECT_EQ(find_server(entries, 1).error().code, ErrorCode::Unavailable);
  std::ofstream(folder / "servers") << "http://c:1\nhttp://d:1";
  EXPECT_EQ(find_server(entries, 1).value().host, "d");
}

TEST(FindServer, ResolvesANameToOneAddressPerReplica) {
  const std::vector<std::string> entries{"dns://localhost:8000"};
  const auto first = find_server(entries, 0);
  ASSERT_TRUE(first) << first.error().context;
  EXPECT_EQ(first->port, 8000);
  EXPECT_EQ(find_server(entries, 100).error().code, ErrorCode::Unavailable);
}

TEST(CheckServers, WantsAnAddressForEachReplica) {
  EXPECT_TRUE(check_servers({"http://a", "http://b"}, 2));
  EXPECT_FALSE(check_servers({"http://a", "http://b"}, 3));
  EXPECT_FALSE(check_servers({}, 1));
  EXPECT_TRUE(check_servers({"file:/x"}, 9));
  EXPECT_TRUE(check_servers({"dns://x:1"}, 9));
  EXPECT_FALSE(check_servers({"dns://x:y"}, 1));
}

}  // namespace
}  // namespace temper::actors
