// One target for libFuzzer: the one named TEMPER_FUZZ_TARGET.
#include "tests/fuzz/targets.hpp"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  temper::fuzz::TEMPER_FUZZ_TARGET({reinterpret_cast<const char*>(data), size});
  return 0;
}
