// The program that wrote a log: payload of the first frame of each file of events.log, and of the
// first frame after a resume. It is not a record, so the log hash, which covers records, does not
// include it.
#pragma once

#include "core/describe.hpp"
#include "orchestrator/record/log_files.hpp"

#include <string>

namespace temper::orchestrator {

struct LogOrigin {
  std::string program;  ///< Version of Temper (core/version.hpp).
  std::uint32_t format = 0;
  bool operator==(const LogOrigin&) const = default;
};
void describe(auto& v, LogOrigin& o) {
  v.field(1, "program", o.program);
  v.field(2, "format", o.format);
}

LogOrigin this_program();

}  // namespace temper::orchestrator
