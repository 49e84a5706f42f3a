// A target under libFuzzer: TEMPER_FUZZ_TARGET names it, the rest is libFuzzer's command line.
#include "tests/fuzz/targets.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

void (*chosen)(std::string_view) = nullptr;

/// Before the other words, so that a -max_len among them counts.
void add_longest(std::size_t longest, int* count, char*** words) {
  static std::string word = "-max_len=" + std::to_string(longest);
  static std::vector<char*> all(*words, *words + *count);
  all.insert(all.begin() + 1, word.data());
  all.push_back(nullptr);
  *words = all.data();
  ++*count;
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* count, char*** words) {
  const char* const name = std::getenv("TEMPER_FUZZ_TARGET");
  for (const temper::fuzz::Target& target : temper::fuzz::kTargets) {
    if (name == nullptr || target.name != name)
      continue;
    chosen = target.run;
    add_longest(target.longest, count, words);
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
