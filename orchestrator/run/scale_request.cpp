#include "orchestrator/run/scale_request.hpp"

#include "core/files.hpp"
#include "core/yaml.hpp"
#include "core/yaml_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

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

/// A small regular file. Any user of the run's machine may have put something else in its place, so
/// a FIFO must not block and a symbolic link is not followed.
Result<std::string> read_small_file(const fs::path& path) {
  const FileDescriptor fd(
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY));
  if (!fd.is_open()) {
    if (errno == ELOOP)
      return invalid_input(path.string() + " is a symbolic link");
    return io_error("cannot open " + path.string(), errno);
  }
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0)
    return io_error("cannot examine " + path.string(), errno);
  if (!S_ISREG(info.st_mode))
    return invalid_input(path.string() + " is not a regular file");
  std::string content(kLargest + 1, '\0');
  std::size_t size = 0;
  while (size < content.size()) {
    const ssize_t n = ::read(fd.get(), content.data() + size, content.size() - size);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return io_error("cannot read " + path.string(), errno);
    if (n == 0)
      break;
    size += static_cast<std::size_t>(n);
  }
  if (size > kLargest)
    return invalid_input(fmt::format("{} is larger than {} bytes", path.string(), kLargest));
  content.resize(size);
  return content;
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
  const auto text = read_small_file(run_dir / kAnswer);
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
  const fs::path path = run_dir / kRequest;
  if (!is_there(path))
    return std::nullopt;
  const auto text = read_small_file(path);
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
      "the run was restarted after this request, which was not carried out; ask again with "
      "`temper scale`";
  return answer_request(run_dir, answer);
}

}  // namespace temper::orchestrator
