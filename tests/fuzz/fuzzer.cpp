// A target under libFuzzer: TEMPER_FUZZ_TARGET names it, the rest is libFuzzer's command line.
#include "tests/fuzz/targets.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {

void (*chosen)(std::string_view) = nullptr;

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const char* const name = std::getenv("TEMPER_FUZZ_TARGET");
  for (const temper::fuzz::Target& target : temper::fuzz::kTargets) {
    if (name != nullptr && target.name == name)
      chosen = target.run;
  }
  if (chosen == nullptr) {
    std::fputs("TEMPER_FUZZ_TARGET names none of:", stderr);
    for (const temper::fuzz::Target& target : temper::fuzz::kTargets)
      std::fprintf(stderr, " %s", target.name.data());
    std::fputs("\n", stderr);
    std::exit(2);
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  chosen({reinterpret_cast<const char*>(data), size});
  return 0;
}
