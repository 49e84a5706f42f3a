// Assertions for bugs, never for input: a failed check prints its place and reason, and aborts.
#pragma once

namespace temper {

[[noreturn]] void check_failed(const char* file, int line, const char* condition, const char* why);

}  // namespace temper

#define TEMPER_CHECK(cond, why) \
  ((cond) ? static_cast<void>(0) : ::temper::check_failed(__FILE__, __LINE__, #cond, why))

#ifdef NDEBUG
#define TEMPER_DCHECK(cond, why) static_cast<void>(0)
#else
#define TEMPER_DCHECK(cond, why) TEMPER_CHECK(cond, why)
#endif
