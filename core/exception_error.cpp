#include "core/exception_error.hpp"

#include <cxxabi.h>
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <new>
#include <string>
#include <system_error>
#include <typeinfo>

namespace temper {
namespace {

std::string type_name(const std::exception& exception) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(
      abi::__cxa_demangle(typeid(exception).name(), nullptr, nullptr, &status), std::free);
  return status == 0 ? name.get() : typeid(exception).name();
}

/// Drops the backtraces that libraries append.
std::string first_line(std::string_view text) {
  return std::string(text.substr(0, text.find('\n')));
}

std::string paths_of(const std::filesystem::filesystem_error& error) {
  std::string paths = error.path1().string();
  if (!error.path2().empty())
    paths += " and " + error.path2().string();
  return paths.empty() ? "a file" : paths;
}

}  // namespace

Error error_of(const std::exception& exception) {
  if (dynamic_cast<const std::bad_alloc*>(&exception) != nullptr) {
    return {ErrorCode::OutOfMemory,
            "out of memory; free some memory, or reduce what the run needs (see `temper check`)"};
  }
  if (const auto* file = dynamic_cast<const std::filesystem::filesystem_error*>(&exception)) {
    return {ErrorCode::Io,
            fmt::format("cannot access {}: {}; check that it exists and that this user has "
                        "permission for it and for its parent folders",
                        paths_of(*file),
                        file->code().message())};
  }
  if (const auto* system = dynamic_cast<const std::system_error*>(&exception)) {
    return {ErrorCode::Io,
            fmt::format("the system refused a resource: {}; check the limits of this user "
                        "(ulimit -a) and of the container",
                        first_line(system->what()))};
  }
  return {ErrorCode::Internal,
          fmt::format(
              "internal error: {}: {}; this is a bug in Temper or in a library that it uses, "
              "not an error in your input; please report this line with the command, the output of "
              "`temper --version` and, for a run, its config.yaml and logs",
              type_name(exception),
              first_line(exception.what()))};
}

void report_uncaught_exceptions() {
  std::set_terminate([] {
    if (const std::exception_ptr uncaught = std::current_exception()) {
      try {
        std::rethrow_exception(uncaught);
      } catch (const std::exception& exception) {
        std::fputs(("temper: " + error_of(exception).context + "\n").c_str(), stderr);
      } catch (...) {
        std::fputs("temper: internal error: an exception of unknown type\n", stderr);
      }
    }
    std::abort();
  });
}

}  // namespace temper
