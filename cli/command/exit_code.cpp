#include "cli/command/exit_code.hpp"

#include <cstdio>
#include <ostream>
#include <string>

namespace temper::cli {
namespace {

int exit_code_of(const Error& error) {
  switch (error.code) {
    case ErrorCode::InvalidInput:
    case ErrorCode::NotFound:
    case ErrorCode::Unsupported:
      return kBadInput;
    case ErrorCode::Corrupt:
      return kFound;
    default:
      return kFailed;
  }
}

}  // namespace

int fail(const Error& error) {
  std::fputs(("temper: " + error.context + "\n").c_str(), stderr);
  return exit_code_of(error);
}

int fail(const Error& error, std::ostream& err, std::string_view where) {
  err << where << ": " << error.context << '\n';
  return exit_code_of(error);
}

}  // namespace temper::cli
