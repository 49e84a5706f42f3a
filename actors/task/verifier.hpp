// Judging a response. A verdict is a reward, or a counted failure with its reason: a verifier that
// crashes, hangs or talks nonsense costs the sample at hand, never the run.
#pragma once

#include "actors/task/task_config.hpp"
#include "core/result.hpp"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace temper::actors {

struct Judgement {
  std::string prompt;
  std::string answer;
  std::string response;
};

struct Verdict {
  double reward = 0;
  std::string failure;  ///< Empty: judged. Else why not (crash, deadline, malformed reply).
};

class Verifier {
 public:
  virtual ~Verifier() = default;
  /// One verdict per judgement, in order. Returns within about
  /// ceil(n / pool) deadlines, whatever the command does.
  virtual std::vector<Verdict> judge(std::span<const Judgement> batch) = 0;
};

/// Errors: a pattern that does not compile, a command that cannot be started.
Result<std::unique_ptr<Verifier>> make_verifier(const VerifierConfig& config);

}  // namespace temper::actors
