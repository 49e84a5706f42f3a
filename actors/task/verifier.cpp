#include "actors/task/verifier.hpp"

#include "actors/task/internal/command_verifier.hpp"
#include "actors/task/internal/sum_verifier.hpp"
#include "actors/task/internal/text_verifiers.hpp"

#include <fmt/format.h>

namespace temper::actors {

Result<std::unique_ptr<Verifier>> make_single_verifier(const SingleVerifier& config) {
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
    case VerifierKind::Judge:
    case VerifierKind::Model:
      return invalid_input(
          fmt::format("verifier.kind `{}` needs a reward actor in Python", name_of(config.kind)));
    case VerifierKind::Sum:
      return invalid_input("a term of a sum cannot be a sum");
  }
  return invalid_input("unknown verifier kind");
}

Result<std::unique_ptr<Verifier>> make_verifier(const VerifierConfig& config) {
  return config.kind == VerifierKind::Sum ? make_sum_verifier(config.terms)
                                          : make_single_verifier(config);
}

}  // namespace temper::actors
