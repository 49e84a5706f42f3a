// Judges responses. A verdict is a reward, or a failure with its reason. A verifier that crashes,
// hangs or sends an invalid reply costs only the current sample; one that has never given a reward
// is given up after kMostBadReplies failures.
#pragma once

#include "actors/task/task_config.hpp"
#include "core/result.hpp"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace temper::actors {

struct JudgeRequest {
  std::string prompt;
  std::string answer;
  std::string response;
};

struct Verdict {
  double reward = 0;
  std::string failure;  ///< Empty if judged; otherwise the reason (crash, deadline, invalid reply).
};

/// Number of failures after which a verifier that has never given a reward is given up.
inline constexpr int kMostBadReplies = 3;

class Verifier {
 public:
  virtual ~Verifier() = default;
  /// One verdict per request, in order. Returns within about ceil(n / pool) deadlines, whatever
  /// the command does.
  virtual std::vector<Verdict> judge(std::span<const JudgeRequest> batch) = 0;
  /// True if the last batch was aborted after kMostBadReplies failures without any reward since the
  /// verifier was created; then every verdict has the last of these failures.
  virtual bool gave_up() const { return false; }
};

/// Errors: InvalidInput for a pattern that does not compile; NotFound or Io for a command that
/// cannot be started.
Result<std::unique_ptr<Verifier>> make_verifier(const VerifierConfig& config);

}  // namespace temper::actors
