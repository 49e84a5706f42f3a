// Judges responses. A verdict is a reward, or a failure with its reason. A verifier that crashes,
// hangs or sends an invalid reply costs only the current sample; one that has never given a reward
// is given up after kMostBadReplies failures.
#pragma once

#include "actors/task/verifier_config.hpp"
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
  std::vector<double> terms{};  ///< Of a sum: the reward of each of its terms().
};

void describe(auto& v, JudgeRequest& r) {
  v.field(1, "prompt", r.prompt);
  v.field(2, "answer", r.answer);
  v.field(3, "response", r.response);
}
void describe(auto& v, Verdict& d) {
  v.field(1, "reward", d.reward);
  v.field(2, "failure", d.failure);
  v.field(3, "terms", d.terms);
}

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
  /// Names of the terms of a sum; of another verifier, none.
  virtual std::vector<std::string> terms() const { return {}; }
};

/// Errors: InvalidInput for a pattern that does not compile, and for kinds that need a worker of
/// the Python package; NotFound or Io for a command that cannot be started.
Result<std::unique_ptr<Verifier>> make_verifier(const VerifierConfig& config);
/// The same for a verifier that is no sum.
Result<std::unique_ptr<Verifier>> make_single_verifier(const SingleVerifier& config);

}  // namespace temper::actors
