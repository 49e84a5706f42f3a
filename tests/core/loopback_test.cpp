#include "core/loopback.hpp"

#include <gtest/gtest.h>

namespace temper {
namespace {

TEST(Loopback, AcceptsLoopbackAddressesAndLocalhostOnly) {
  for (const char* host : {"localhost", "127.0.0.1", "127.255.0.7", "::1", "[::1]"})
    EXPECT_TRUE(is_loopback(host)) << host;
  for (const char* host :
       {"", "0.0.0.0", "128.0.0.1", "127.0.0.1.evil.example", "127.", "::", "[::]"})
    EXPECT_FALSE(is_loopback(host)) << host;
}

}  // namespace
}  // namespace temper
