#include "orchestrator/scheduler/state/facts.hpp"

namespace temper::orchestrator {

Reason reason_with(ReasonKind kind, std::string_view detail) {
  Reason reason{.kind = kind};
  std::size_t length = detail.size();
  if (length > Reason::kMostDetail) {
    length = Reason::kMostDetail;
    // A byte 10xxxxxx continues a character of UTF-8.
    while (length > 0 && (static_cast<unsigned char>(detail[length]) & 0xc0U) == 0x80U)
      --length;
  }
  reason.detail = detail.substr(0, length);
  return reason;
}

}  // namespace temper::orchestrator
