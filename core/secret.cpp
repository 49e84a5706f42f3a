#include "core/secret.hpp"

#include "core/check.hpp"

#include <fmt/format.h>
#include <sys/random.h>

#include <array>

namespace temper {

std::string make_secret() {
  std::array<unsigned char, 16> bytes{};
  TEMPER_CHECK(::getrandom(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()),
               "getrandom() failed");
  std::string secret;
  for (const unsigned char byte : bytes)
    secret += fmt::format("{:02x}", byte);
  return secret;
}

bool is_same_secret(std::string_view a, std::string_view b) {
  if (b.empty())
    return false;
  unsigned char differs = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size(); ++i)
    differs |= static_cast<unsigned char>(a[i] ^ b[i % b.size()]);
  return differs == 0;
}

}  // namespace temper
