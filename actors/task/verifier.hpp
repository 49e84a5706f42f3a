// Judging a response. A verdict is a reward, or a counted failure with its reason: a verifier that
// crashes, hangs or talks nonsense costs the sample at hand. Only one that has never given a reward
// is given up.
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

/// Failures of a verifier that has never given a reward, after which it is given up.
inline constexpr int kMostBadReplies = 3;

class Verifier {
 public:
  virtual ~Verifier() = default;
  /// One verdict per judgement, in order. Returns within about
  /// ceil(n / pool) deadlines, whatever the command does.
  virtual std::vector<Verdict> judge(std::span<const Judgement> batch) = 0;
  /// The last batch was cut short, after kMostBadReplies failures without a reward since this was
  /// made: every verdict has the last of these failures.
  virtual bool gave_up() const { return false; }
};

/// Errors: a pattern that does not compile, a command that cannot be started.
Result<std::unique_ptr<Verifier>> make_verifier(const VerifierConfig& config);

}  // namespace temper::actors
