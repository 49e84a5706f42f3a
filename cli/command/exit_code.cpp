#include "cli/command/exit_code.hpp"

#include <cstdio>
#include <string>

namespace temper::cli {

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

int fail(const Error& error) {
  std::fputs(("temper: " + error.context + "\n").c_str(), stderr);
  return exit_code_of(error);
}

}  // namespace temper::cli
