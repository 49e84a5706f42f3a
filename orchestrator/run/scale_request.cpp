#include "orchestrator/run/scale_request.hpp"

#include "core/files.hpp"
#include "core/yaml.hpp"
#include "core/yaml_file.hpp"

#include <fmt/format.h>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRequest = "scale.request";
constexpr const char* kAnswer = "scale.answer";

}  // namespace

Status write_request(const fs::path& run_dir, const ScaleRequest& request) {
  return write_file_atomically(run_dir / kRequest, to_yaml(request));
}

std::optional<ScaleAnswer> read_answer(const fs::path& run_dir, const std::string& id) {
  auto answer = read_own_yaml_file<ScaleAnswer>(run_dir / kAnswer);
  if (!answer || answer->id != id)
    return std::nullopt;
  return *std::move(answer);
}

void withdraw_request(const fs::path& run_dir) {
  std::error_code ignored;
  fs::remove(run_dir / kRequest, ignored);
}

std::optional<Result<ScaleRequest>> read_request(const fs::path& run_dir) {
  std::error_code ignored;
  if (!fs::exists(run_dir / kRequest, ignored))
    return std::nullopt;
  return read_own_yaml_file<ScaleRequest>(run_dir / kRequest);
}

Status answer_request(const fs::path& run_dir, const ScaleAnswer& answer) {
  TEMPER_TRY_STATUS(write_file_atomically(run_dir / kAnswer, to_yaml(answer)));
  withdraw_request(run_dir);
  return {};
}

}  // namespace temper::orchestrator
