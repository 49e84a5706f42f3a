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

TEST(Url, AcceptsAddressesOfOpenaiClients) {
  const Url server{"host", 8000, ""};
  for (const char* const text : {"http://host:8000",
                                 "http://host:8000/",
                                 "http://host:8000/v1",
                                 "http://host:8000/v1/",
                                 "http://host:8000//v1//",
                                 " http://host:8000/v1 ",
                                 "\thttp://host:8000\r\n"})
    EXPECT_EQ(parse_url(text).value(), server) << text;
  EXPECT_EQ(parse_url("http://host/v1").value(), (Url{"host", 80, ""}));
  EXPECT_EQ(parse_url("http://host:1/api/v1").value(), (Url{"host", 1, "/api"}));
  EXPECT_EQ(parse_url("http://host:1/v11").value(), (Url{"host", 1, "/v11"}));
  EXPECT_EQ(parse_url("http://[2001:db8::7]/v1").value(), (Url{"2001:db8::7", 80, ""}));
}

TEST(Url, RejectsInvalidAddresses) {
  for (const char* const text : {"",
                                 " ",
                                 "gpu-1",
                                 "gpu-1:8000",
                                 "https://gpu-1",
                                 "ftp://gpu-1",
                                 "http:/gpu-1",
                                 "http://",
                                 "http:///v1",
                                 "http://:80",
                                 "http://a:",
                                 "http://a:/v1",
                                 "http://a:b",
                                 "http://a:0",
                                 "http://a:-1",
                                 "http://a:70000",
                                 "http://a:80x",
                                 "http://a b:80",
                                 "http://a, http://b",
                                 "http://a;b:80",
                                 "http://::1:8000",
                                 "http://::1",
                                 "http://[::1",
                                 "http://::1]:80",
                                 "http://[]:80",
                                 "http://[a]:80",
                                 "http://[::1]x:80",
                                 "http://a:80/v1/chat/completions",
                                 "http://a:80/v1/models",
                                 "http://a:80?x=1",
                                 "http://a:80/v1#x",
                                 "http://user@a:80"}) {
    const auto url = parse_url(text);
    ASSERT_FALSE(url) << text;
    EXPECT_EQ(url.error().code, ErrorCode::InvalidInput) << text;
    EXPECT_NE(url.error().context.find("http://HOST:PORT"), std::string::npos) << text;
  }
}

TEST(RedisUrl, IsAHostAndAPortWithOrWithoutAScheme) {
  const RedisUrl plain{{{"redis-0.cluster", 6379}}, false}, tls{{{"redis-0.cluster", 6379}}, true};
  EXPECT_EQ(parse_redis_url("redis-0.cluster:6379", "").value(), plain);
  EXPECT_EQ(parse_redis_url("redis://redis-0.cluster:6379", "").value(), plain);
  EXPECT_EQ(parse_redis_url("rediss://redis-0.cluster:6379", "").value(), tls);
  EXPECT_EQ(parse_redis_url("[fd00::7]:1", "").value(), (RedisUrl{{{"fd00::7", 1}}, false}));
  EXPECT_EQ(parse_redis_url("rediss://[fd00::7]:1", "").value(),
            (RedisUrl{{{"fd00::7", 1}}, true}));
  EXPECT_EQ(parse_redis_url("rediss://a:1, [::1]:2,a:3", "").value(),
            (RedisUrl{{{"a", 1}, {"::1", 2}, {"a", 3}}, true}));
}

TEST(RedisUrl, IsRefusedIfItIsSomethingElse) {
  for (const char* const text : {"",
                                 "host",
                                 "host:",
                                 ":6379",
                                 "host:0",
                                 "host:65536",
                                 "host:-1",
                                 "host:63 79",
                                 "host:6379/0",
                                 "http://host:6379",
                                 "REDISS://host:6379",
                                 "redis+tls://host:6379",
                                 "x/rediss://host:6379",
                                 "rediss://host",
                                 "rediss://host:6379/0",
                                 "rediss://user@host:6379",
                                 "user@host:6379",
                                 "fd00::7:6379",
                                 "[fd00::7]",
                                 "[]:6379",
                                 "host:1,",
                                 "host:1,host:2/0",
                                 "host:1,rediss://host:2",
                                 "host:1,other:1,host:1",
                                 "host:1,HOST:1"}) {
    const auto said = parse_redis_url(text, "REDIS_PASSWORD");
    ASSERT_FALSE(said) << text;
    EXPECT_EQ(said.error().code, ErrorCode::InvalidInput) << text;
    EXPECT_TRUE(
        said.error().context.ends_with("; expected HOST:PORT, or rediss://HOST:PORT for TLS"))
        << said.error().context;
  }
}

TEST(RedisUrl, HasOneSchemeForAllServers) {
  for (const char* const text : {"a:1,rediss://b:2", "rediss://a:1,rediss://b:2"}) {
    const auto said = parse_redis_url(text, "");
    ASSERT_FALSE(said);
    EXPECT_NE(said.error().context.find("one scheme, in front of all servers"), std::string::npos)
        << said.error().context;
  }
}

TEST(RedisUrl, NamesWhereAPasswordBelongsAndDoesNotRepeatIt) {
  for (const char* text : {"user:secret@host:6379", "rediss://user:secret@host:6379"}) {
    const auto said = parse_redis_url(text, "REDIS_PASSWORD");
    ASSERT_FALSE(said);
    EXPECT_EQ(said.error().context.find("secret"), std::string::npos);
    EXPECT_NE(said.error().context.find("set REDIS_PASSWORD"), std::string::npos);
  }
}

TEST(Url, NeverRepeatsAPassword) {
  for (const char* const text : {"http://u:secret@a:80",
                                 "http://secret@a",
                                 "https://u:secret@a:80",
                                 "u:secret@a:80",
                                 "http://u:sec/secret@a:80",
                                 "http://u:s@secret@a:x",
                                 "http://u:a secret@a:80",
                                 "http://u:secret@",
                                 "http://u:secret@[::1",
                                 "http://u:secret@a:80/v1?x",
                                 "dns://u:secret@a:80"}) {
    const Status status = check_servers({text}, 1);
    ASSERT_FALSE(status) << text;
    EXPECT_EQ(status.error().context.find("secret"), std::string::npos) << status.error().context;
  }
}

TEST(FindServer, UsesTheEntryOfTheReplica) {
  const std::vector<std::string> entries{"http://a:1", "http://b:2"};
  EXPECT_EQ(find_server(entries, 1).value().host, "b");
  EXPECT_FALSE(find_server(entries, 2));
}

TEST(FindServer, RereadsTheFileAndReportsAMissingLineAsTemporary) {
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

TEST(CheckServers, RequiresAnAddressForEachReplica) {
  EXPECT_TRUE(check_servers({"http://a", "http://b"}, 2));
  EXPECT_FALSE(check_servers({"http://a", "http://b"}, 3));
  EXPECT_FALSE(check_servers({}, 1));
  EXPECT_TRUE(check_servers({"file:/x"}, 9));
  EXPECT_TRUE(check_servers({"dns://x:1"}, 9));
  EXPECT_FALSE(check_servers({"dns://x:y"}, 1));
}

}  // namespace
}  // namespace temper::actors
