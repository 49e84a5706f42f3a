// Which program wrote a log: the payload of the first frame of each file of events.log, and of the
// first frame behind the place where a resume went on. It is no record, and the log hash, which is
// over records, does not cover it.
#pragma once

#include "core/describe.hpp"
#include "orchestrator/record/log_files.hpp"

#include <string>

namespace temper::orchestrator {

struct LogOrigin {
  std::string program;  ///< Its version: core/version.hpp.
  std::uint32_t format = 0;
  bool operator==(const LogOrigin&) const = default;
};
template <class V>
void describe(V& v, LogOrigin& o) {
  v.field(1, "program", o.program);
  v.field(2, "format", o.format);
}

LogOrigin this_program();

}  // namespace temper::orchestrator
