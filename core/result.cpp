#include "core/result.hpp"

#include <cstring>

namespace temper {

std::string_view sentence(ErrorCode code) {
  switch (code) {
    case ErrorCode::InvalidInput:
      return "The input is invalid.";
    case ErrorCode::NotFound:
      return "It does not exist.";
    case ErrorCode::Corrupt:
      return "The data fails its own checks.";
    case ErrorCode::Io:
      return "The operating system refused.";
    case ErrorCode::Timeout:
      return "A deadline passed.";
    case ErrorCode::Unavailable:
      return "It is gone or not ready yet.";
    case ErrorCode::OutOfMemory:
      return "A byte budget would be exceeded.";
    case ErrorCode::Unsupported:
      return "This build or mode cannot do it.";
    case ErrorCode::NotFinite:
      return "A computed value is infinite or NaN.";
    case ErrorCode::Internal:
      return "A library failed unexpectedly.";
  }
  return "Unknown error.";
}

Error io_error(std::string_view what, int errno_value) {
  return {ErrorCode::Io, std::string(what) + ": " + std::strerror(errno_value)};
}

}  // namespace temper
