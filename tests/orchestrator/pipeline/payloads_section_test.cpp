#include "orchestrator/pipeline/payloads_section.hpp"

#include <gtest/gtest.h>

namespace temper::orchestrator {
namespace {

TEST(HostAndPort, AreSeparatedByTheLastColon) {
  const HostAndPort name = parse_host_and_port("redis-0.cluster:6379").value();
  EXPECT_EQ(name.host, "redis-0.cluster");
  EXPECT_EQ(name.port, 6379);
  const HostAndPort ipv6 = parse_host_and_port("[fd00::7]:1").value();
  EXPECT_EQ(ipv6.host, "fd00::7");
  EXPECT_EQ(ipv6.port, 1);
}

TEST(HostAndPort, AreRefusedIfTheyAreSomethingElse) {
  for (const char* text : {"",
                           "host",
                           "host:",
                           ":6379",
                           "host:0",
                           "host:65536",
                           "host:-1",
                           "host:63 79",
                           "host:6379/0",
                           "redis://host:6379",
                           "user@host:6379",
                           "fd00::7:6379",
                           "[]:6379"}) {
    const auto said = parse_host_and_port(text);
    ASSERT_FALSE(said) << text;
    EXPECT_EQ(said.error().code, ErrorCode::InvalidInput);
    EXPECT_TRUE(said.error().context.starts_with("expected HOST:PORT")) << said.error().context;
  }
}

TEST(HostAndPort, APasswordIsNotRepeated) {
  const auto said = parse_host_and_port("user:secret@host:6379");
  ASSERT_FALSE(said);
  EXPECT_EQ(said.error().context.find("secret"), std::string::npos);
  EXPECT_NE(said.error().context.find("TEMPER_REDIS_PASSWORD"), std::string::npos);
}

}  // namespace
}  // namespace temper::orchestrator
