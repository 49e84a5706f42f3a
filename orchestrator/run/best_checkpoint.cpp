#include "orchestrator/run/best_checkpoint.hpp"

#include "core/files.hpp"
#include "core/json.hpp"
#include "orchestrator/run/checkpoints.hpp"

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFile = "evaluation.json";

/// The same files under another folder.
Status link_folder(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::remove_all(to, error);
  TEMPER_TRY_STATUS(make_folder(to));
  for (const auto& entry : fs::recursive_directory_iterator(from, error)) {
    const fs::path target = to / entry.path().lexically_relative(from);
    std::error_code failed;
    if (entry.is_directory(failed)) {
      TEMPER_TRY_STATUS(make_folder(target));
      continue;
    }
    fs::create_hard_link(entry.path(), target, failed);
    if (failed)
      fs::copy_file(entry.path(), target, failed);
    if (failed)
      return io_error("cannot write " + target.string(), failed.value());
  }
  if (error)
    return io_error("cannot read " + from.string(), error.value());
  return {};
}

}  // namespace

Status BestCheckpoint::link(PolicyVersion version, const fs::path& checkpoint) {
  linked_.reset();
  TEMPER_TRY_STATUS(link_folder(checkpoint, candidate()));
  linked_ = version;
  return {};
}

Status BestCheckpoint::saved(PolicyVersion version, const fs::path& checkpoint, bool evaluates) {
  const bool awaited = awaited_ && awaited_->version == version;
  if (!evaluates && !awaited)
    return {};
  TEMPER_TRY_STATUS(link(version, checkpoint));
  if (!awaited)
    return {};
  const command::Evaluated result = *awaited_;
  return promote(result);
}

Status BestCheckpoint::found(const command::Evaluated& result) {
  awaited_.reset();
  if (!result.best) {
    linked_.reset();
    std::error_code ignored;
    fs::remove_all(candidate(), ignored);
    return {};
  }
  const fs::path checkpoint = Checkpoints(run_dir_ / "checkpoints").folder_of(result.version);
  std::error_code ignored;
  if (linked_ != result.version && fs::exists(checkpoint, ignored))
    TEMPER_TRY_STATUS(link(result.version, checkpoint));
  if (linked_ == result.version)
    return promote(result);
  awaited_ = result;
  return {};
}

Status BestCheckpoint::promote(const command::Evaluated& result) {
  awaited_.reset();
  linked_.reset();
  TEMPER_TRY_STATUS(
      write_file_atomically(candidate() / kFile, to_json(result, JsonStyle::Pretty) + "\n"));
  std::error_code ignored;
  const fs::path best = run_dir_ / kBestFolder;
  const fs::path old = run_dir_ / "best.replaced";
  fs::remove_all(old, ignored);
  if (fs::exists(best, ignored))
    TEMPER_TRY_STATUS(rename_durably(best, old));
  TEMPER_TRY_STATUS(rename_durably(candidate(), best));
  fs::remove_all(old, ignored);
  return {};
}

}  // namespace temper::orchestrator
