#include "core/passwords.hpp"

#include <gtest/gtest.h>

namespace temper {
namespace {

TEST(Passwords, AreRemovedFromAddresses) {
  const std::pair<const char*, const char*> cases[] = {
      {"http://u:secret@host:1/v1", "http://***@host:1/v1"},
      {"http://secret@host", "http://***@host"},
      {"http://:secret@host", "http://***@host"},
      {"u:secret@host:8000", "***@host:8000"},
      {"http://u:sec@ret@host", "http://***@host"},
      {"http://u:sec/ret@host", "http://***@host"},
      {"http://u:sec=ret@host", "http://***@host"},
      {"--set a.b=[http://u:secret@host, http://v:secret@host]",
       "--set a.b=[http://***@host, http://***@host]"},
      {"--set a.b=u:secret@host", "--set a.b=***@host"},
      {"found `redis://default:secret@10.0.0.1:6379/0`", "found `redis://***@10.0.0.1:6379/0`"},
      {"\"https://u:secret@[::1]:9\": no", "\"https://***@[::1]:9\": no"},
      {"", ""},
      {"@", "@"},
      {"me@example.com", "me@example.com"},
      {"config@v2.yaml:3: key", "config@v2.yaml:3: key"},
      {"http://host:1/a b", "http://host:1/a b"},
  };
  for (const auto& [text, shown] : cases)
    EXPECT_EQ(without_passwords(text), shown) << text;
}

}  // namespace
}  // namespace temper
