#include "orchestrator/run/scale_request.hpp"

#include "core/files.hpp"
#include "core/yaml.hpp"
#include "core/yaml_file.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRequest = "scale.request";
constexpr const char* kAnswer = "scale.answer";
constexpr const char* kExpected = "expected what `temper scale` writes";
/// Of a request or an answer, in bytes.
constexpr std::size_t kLargest = 4096;
constexpr std::size_t kLongestId = 128;
/// As `replicas` in the configuration.
constexpr std::int32_t kMostActors = 4096;

/// A small regular file. Any user of the run's machine may have put something else in its place.
Result<std::string> read_small_file(const fs::path& run_dir, const char* name) {
  TEMPER_TRY(FileReader file, FileReader::open(UntrustedFolder(run_dir), name));
  std::string content;
  while (content.size() <= kLargest) {
    TEMPER_TRY(const std::size_t n, file.read(content, kLargest + 1 - content.size()));
    if (n == 0)
      return content;
  }
  return invalid_input(
      fmt::format("{} is larger than {} bytes", (run_dir / name).string(), kLargest));
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));
}

}  // namespace

Status write_request(const fs::path& run_dir, const ScaleRequest& request) {
  return write_file_atomically(run_dir / kRequest, to_yaml(request));
}

std::optional<ScaleAnswer> read_answer(const fs::path& run_dir, const std::string& id) {
  const auto text = read_small_file(run_dir, kAnswer);
  if (!text)
    return std::nullopt;
  YamlValue<ScaleAnswer> answer = read_yaml<ScaleAnswer>(kAnswer, *text);
  if (!answer.issues.empty() || answer.value.id != id)
    return std::nullopt;
  return std::move(answer.value);
}

Status withdraw_request(const fs::path& run_dir) {
  const fs::path request = run_dir / kRequest;
  std::error_code error;
  fs::remove(request, error);
  if (!error)
    return {};
  const fs::path aside = free_name(run_dir / fmt::format("{}.refused", kRequest));
  std::error_code stays;
  fs::rename(request, aside, stays);
  return stays ? io_error("cannot remove " + request.string(), error.value()) : Status();
}

Result<ScaleRequest> parse_request(std::string_view text) {
  const YamlValue<ScaleRequest> read = read_yaml<ScaleRequest>(kRequest, text);
  if (!read.issues.empty()) {
    const YamlIssue& first = read.issues.front();
    return invalid_input(fmt::format("{}: {}{}{}; {}",
                                     kRequest,
                                     first.key,
                                     first.key.empty() ? "" : ": ",
                                     first.message,
                                     kExpected));
  }
  const ScaleRequest& request = read.value;
  if (request.id.empty() || request.id.size() > kLongestId) {
    return invalid_input(fmt::format("{}: id: expected 1 to {} characters, found {}; {}",
                                     kRequest,
                                     kLongestId,
                                     request.id.size(),
                                     kExpected));
  }
  const auto check = [](std::string_view role,
                        const std::optional<std::int32_t>& number,
                        std::int32_t least) -> Status {
    if (!number || (*number >= least && *number <= kMostActors))
      return {};
    return invalid_input(fmt::format(
        "{}: {}: expected {} to {}, found {}", kRequest, role, least, kMostActors, *number));
  };
  TEMPER_TRY_STATUS(check("rollout", request.rollout, 1));
  TEMPER_TRY_STATUS(check("reference", request.reference, 0));
  TEMPER_TRY_STATUS(check("reward", request.reward, 1));
  return request;
}

std::optional<Result<ScaleRequest>> read_request(const fs::path& run_dir) {
  if (!is_there(run_dir / kRequest))
    return std::nullopt;
  const auto text = read_small_file(run_dir, kRequest);
  return text ? parse_request(*text) : Result<ScaleRequest>(text.error());
}

Status answer_request(const fs::path& run_dir, const ScaleAnswer& answer) {
  TEMPER_TRY_STATUS(withdraw_request(run_dir));
  return write_file_atomically(run_dir / kAnswer, to_yaml(answer));
}

Status decline_older_request(const fs::path& run_dir) {
  const auto request = read_request(run_dir);
  if (!request)
    return {};
  ScaleAnswer answer;
  answer.outcome = ScaleOutcome::Restarted;
  answer.id = *request ? (*request)->id : "";
  answer.refused =
      "the run was restarted after this request, which was not carried out; retry with "
      "`temper scale`";
  return answer_request(run_dir, answer);
}

}  // namespace temper::orchestrator
