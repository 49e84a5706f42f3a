// What `temper scale` asks of the orchestrator of a run that goes on, and what it answers: files of
// the run's folder, each replaced as a whole.
//
//   scale.request   the numbers of actors that are wanted; gone once it is answered
//   scale.answer    what became of the last request
#pragma once

#include "core/describe.hpp"
#include "core/result.hpp"
#include "core/units.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace temper::orchestrator {

struct ScaleRequest {
  std::string id;                                          ///< Of this request, for its answer.
  std::optional<std::int32_t> rollout, reference, reward;  ///< None: as they are.
};
template <class V>
void describe(V& v, ScaleRequest& r) {
  v.field(1, "id", r.id);
  v.field(2, "rollout", r.rollout);
  v.field(3, "reference", r.reference);
  v.field(4, "reward", r.reward);
}

struct ScaleAnswer {
  std::string id;
  std::string done;     ///< What changes, a line each; empty: nothing did.
  std::string refused;  ///< Why it may not be; empty: it is done.
};
template <class V>
void describe(V& v, ScaleAnswer& a) {
  v.field(1, "id", a.id);
  v.field(2, "done", a.done);
  v.field(3, "refused", a.refused);
}

/// Leaves a request for the orchestrator, in the place of one that it has not read.
Status write_request(const std::filesystem::path& run_dir, const ScaleRequest& request);
/// The answer to this request; none: there is none yet.
std::optional<ScaleAnswer> read_answer(const std::filesystem::path& run_dir, const std::string& id);
/// Takes back what nobody has answered.
void withdraw_request(const std::filesystem::path& run_dir);

/// For the orchestrator: what is asked now; none: nothing. Error: the file cannot be read as one.
std::optional<Result<ScaleRequest>> read_request(const std::filesystem::path& run_dir);
/// The request is gone once this is there.
Status answer_request(const std::filesystem::path& run_dir, const ScaleAnswer& answer);

}  // namespace temper::orchestrator
