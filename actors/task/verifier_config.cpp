#include "actors/task/verifier_config.hpp"

#include <algorithm>

namespace temper::actors {
namespace {

/// The function without its module, unless another one has the same name.
std::string short_name(const std::string& function, const std::map<std::string, double>& all) {
  const auto last_part = [](const std::string& name) {
    return name.substr(name.find_last_of(":.") + 1);
  };
  const std::string name = last_part(function);
  const auto same =
      std::ranges::count_if(all, [&](const auto& other) { return last_part(other.first) == name; });
  return same == 1 ? name : function;
}

}  // namespace

std::map<std::string, VerifierTerm> terms_of(const VerifierConfig& config) {
  if (config.kind == VerifierKind::Sum)
    return config.terms;
  std::map<std::string, VerifierTerm> terms;
  std::map<std::string, double> functions;
  if (config.kind == VerifierKind::Python) {
    functions = config.functions;
    if (!config.function.empty())
      functions.try_emplace(config.function, 1.0);
  }
  const SingleVerifier& single = config;
  for (const auto& [function, weight] : functions) {
    VerifierTerm& term = terms[short_name(function, functions)];
    static_cast<SingleVerifier&>(term) = single;
    term.function = function;
    term.weight = weight;
  }
  if (terms.empty())
    static_cast<SingleVerifier&>(terms[std::string(name_of(config.kind))]) = single;
  return terms;
}

std::string section_of(const VerifierConfig& config, const std::string& term) {
  return config.kind == VerifierKind::Sum ? "verifier.terms." + term : "verifier";
}

bool needs_python(const VerifierConfig& config) {
  const auto terms = terms_of(config);
  return std::ranges::any_of(
      terms, [](const auto& term) { return traits_of(term.second.kind).needs_python; });
}

}  // namespace temper::actors
