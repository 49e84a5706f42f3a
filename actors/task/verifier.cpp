#include "actors/task/verifier.hpp"

#include "actors/task/internal/command_verifier.hpp"
#include "actors/task/internal/text_verifiers.hpp"

namespace temper::actors {

Result<std::unique_ptr<Verifier>> make_verifier(const VerifierConfig& config) {
  switch (config.kind) {
    case VerifierKind::Exact:
      return make_exact_verifier();
    case VerifierKind::Numeric:
      return make_numeric_verifier(config.tolerance);
    case VerifierKind::Regex:
      return make_regex_verifier(config.pattern);
    case VerifierKind::Command:
      return make_command_verifier(config, std::make_unique<RealClock>());
    case VerifierKind::Python:
      return invalid_input("verifier.kind `python` needs a reward actor in Python");
  }
  return invalid_input("unknown verifier kind");
}

}  // namespace temper::actors
