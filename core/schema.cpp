#include "core/schema.hpp"

#include <cxxabi.h>

#include <cctype>
#include <cstdlib>
#include <memory>

namespace temper::detail {

std::string schema_name(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), std::free);
  std::string_view rest = status == 0 ? text.get() : type.name();
  std::string name;
  while (!rest.empty()) {
    const std::size_t end = rest.find("::");
    const std::string_view part = rest.substr(0, end);
    if (std::isupper(static_cast<unsigned char>(part.front())) != 0)
      name.append(name.empty() ? "" : ".").append(part);
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 2);
  }
  return name;
}

}  // namespace temper::detail
