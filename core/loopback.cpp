#include "core/loopback.hpp"

#include <arpa/inet.h>

#include <string>

namespace temper {

bool is_loopback(std::string_view host) {
  in_addr address{};
  return host == "localhost" || host == "::1" || host == "[::1]" ||
         (::inet_pton(AF_INET, std::string(host).c_str(), &address) == 1 &&
          ntohl(address.s_addr) >> 24 == IN_LOOPBACKNET);
}

}  // namespace temper
