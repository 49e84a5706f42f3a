// What `temper scale` asks of the orchestrator of a running job, and the answer: files of the run
// folder, each replaced as a whole.
//
//   scale.request   the wanted numbers of actors; removed once it is answered
//   scale.answer    the answer to the last request
#pragma once

#include "core/describe.hpp"
#include "core/result.hpp"
#include "core/units.hpp"

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace temper::orchestrator {

struct ScaleRequest {
  std::string id;                                          ///< Names the request in its answer.
  std::optional<std::int32_t> rollout, reference, reward;  ///< None: unchanged.
  bool operator==(const ScaleRequest&) const = default;
};
void describe(auto& v, ScaleRequest& r) {
  v.field(1, "id", r.id);
  v.field(2, "rollout", r.rollout);
  v.field(3, "reference", r.reference);
  v.field(4, "reward", r.reward);
}

/// Restarted: another orchestrator has taken over since the request was written, and has not
/// carried it out.
enum class ScaleOutcome { Done, Refused, Restarted };

struct ScaleAnswer {
  std::string id;
  std::string done;     ///< The changes, a line each; empty: there were none.
  std::string refused;  ///< The reason of a request that was not carried out.
  ScaleOutcome outcome = ScaleOutcome::Done;
};
void describe(auto& v, ScaleAnswer& a) {
  v.field(1, "id", a.id);
  v.field(2, "done", a.done);
  v.field(3, "refused", a.refused);
  v.field(4, "outcome", a.outcome);
}

/// Leaves a request for the orchestrator and replaces one that it has not read. Errors: see
/// write_file_atomically().
Status write_request(const std::filesystem::path& run_dir, const ScaleRequest& request);
/// The answer to this request; nullopt: there is none yet.
std::optional<ScaleAnswer> read_answer(const std::filesystem::path& run_dir, const std::string& id);
/// Removes a request that nobody has answered. A folder in its place is moved aside as
/// scale.request.refused-N.
Status withdraw_request(const std::filesystem::path& run_dir);

/// Error InvalidInput: the text is not a request that an orchestrator could carry out.
Result<ScaleRequest> parse_request(std::string_view text);

/// For the orchestrator: the request that waits, if any. Never blocks. Error: it is
/// not a request: no regular file, too large, unreadable, or refused by parse_request().
std::optional<Result<ScaleRequest>> read_request(const std::filesystem::path& run_dir);
/// Removes the request, then answers it. Errors: those of withdraw_request() and
/// write_file_atomically().
Status answer_request(const std::filesystem::path& run_dir, const ScaleAnswer& answer);

/// Requires: the lock of the run folder, just taken. A request that waits is older than this
/// orchestrator; it is answered as Restarted.
Status decline_older_request(const std::filesystem::path& run_dir);

}  // namespace temper::orchestrator

namespace temper {

template <>
struct EnumNames<orchestrator::ScaleOutcome> {
  using O = orchestrator::ScaleOutcome;
  static constexpr std::array<std::pair<O, std::string_view>, 3> value{
      {{O::Done, "done"}, {O::Refused, "refused"}, {O::Restarted, "restarted"}}};
};

}  // namespace temper
