// The weighted sum of several verifiers. A response that one of them cannot judge fails.
#pragma once

#include "actors/task/verifier.hpp"

#include <map>

namespace temper::actors {

/// Errors: those of make_verifier(), with the name of the term.
Result<std::unique_ptr<Verifier>> make_sum_verifier(
    const std::map<std::string, VerifierTerm>& terms);

}  // namespace temper::actors
