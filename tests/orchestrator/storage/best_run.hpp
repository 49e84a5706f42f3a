// A run that has kept a best/, and what the commands that read it say.
#pragma once

#include "actors/model_folder/model_folder.hpp"
#include "actors/model_folder/stored_tensors.hpp"
#include "core/files.hpp"
#include "core/json.hpp"
#include "core/random.hpp"
#include "orchestrator/fsck/fsck.hpp"
#include "orchestrator/model_export/model_export.hpp"
#include "orchestrator/record/audit_run.hpp"
#include "orchestrator/run/best_checkpoint.hpp"
#include "orchestrator/run/resume.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/stored_run.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>

extern "C" {  // killed_at_call.cpp
void temper_kill_below(const char* folder, long at, int exchanges);
void temper_sync_nothing();
}

namespace temper::orchestrator {

namespace fs = std::filesystem;
using testing::StoredRun;
using testing::StoredRunOptions;

inline actors::ConfigJson model_config() {
  actors::ConfigJson config;
  config.model.architecture = actors::Architecture::Qwen3;
  config.model.hidden = 8;
  config.model.layers = 1;
  config.model.heads = 1;
  config.model.kv_heads = 1;
  config.model.head_dim = 8;
  config.model.ffn = 8;
  config.model.vocabulary = 14;
  config.end_tokens = {1};
  return config;
}

/// Weights that are all `value`, as a trainer saves them.
inline void save_weights(const fs::path& folder, PolicyVersion version) {
  const auto layout = actors::Layout::make(model_config().model, 14).value();
  const std::vector<float> flat(static_cast<std::size_t>(layout.size()),
                                static_cast<float>(version.value()));
  EXPECT_TRUE(
      write_file_atomically(folder / "model.safetensors",
                            actors::write_safetensors(actors::tensors_to_write(layout, flat), {})));
}

/// A run whose log calls two versions after the base the best, or those before it was killed.
inline StoredRun evaluated_run(StoredRunOptions options = {}, std::uint64_t seed = 1) {
  options.steps = 5;
  options.keeps_best = true;
  options.keep = 9;
  options.save = save_weights;
  for (options.seed = seed;; ++options.seed) {
    StoredRun run(options);
    if (std::ssize(run.bests()) < options.killed_at_best.value_or(2))
      continue;
    actors::ModelFolderToWrite base;
    base.config_json = actors::write_config_json(model_config());
    base.files["tokenizer.json"] = "{}";
    const auto layout = actors::Layout::make(model_config().model, 14).value();
    const std::vector<float> flat(static_cast<std::size_t>(layout.size()));
    EXPECT_TRUE(make_folder(run.dir().base()));
    EXPECT_TRUE(
        actors::write_model_folder(run.dir().base(), base, actors::tensors_to_write(layout, flat)));
    EXPECT_TRUE(run.dir().seal_inputs());
    return run;
  }
}

/// What each command makes of best/: None, Whole, or wrong (the code of the error; of fsck and
/// audit Corrupt where they find something).
struct Verdicts {
  std::string fsck, audit, from, exported, eval;
  bool agree() const { return fsck == audit && fsck == exported && fsck == from && fsck == eval; }
  std::string text() const {
    return fmt::format(
        "fsck {}, audit {}, export {}, --from {}, eval {}", fsck, audit, exported, from, eval);
  }
};

inline std::string of_error(const Error& error) {
  return error.code == ErrorCode::Corrupt ? "wrong" : fmt::format("error: {}", error.context);
}

/// Of a run whose other files are whole. `there`: it has a best/, or had one.
inline Verdicts verdicts_on(const fs::path& run, const fs::path& scratch) {
  Verdicts v;
  const auto checked = check_run(run, Repair::No);
  v.fsck = !checked ? of_error(checked.error()) : checked->whole() ? "right" : "wrong";
  const auto audited = audit_run(run);
  v.audit = !audited ? of_error(audited.error()) : audited->violations.empty() ? "right" : "wrong";
  // Where there is none, to have none is right; export says so.
  const auto right = [](const Error& error) {
    return error.code == ErrorCode::NotFound ? "right" : of_error(error);
  };
  ModelExport what = parse_export_source(run.string() + "@best").value();
  const auto source = find_export_source(what);
  v.from = source ? "right" : right(source.error());
  std::error_code ignored;
  fs::remove_all(scratch, ignored);
  what.to = scratch;
  const auto exported = export_model(what);
  v.exported = exported ? "right" : right(exported.error());
  const auto best = verify_best(run);  // as `temper eval RUN` asks
  v.eval = !best ? of_error(best.error()) : best->is_wrong() ? "wrong" : "right";
  return v;
}

inline void copy_run(const fs::path& from, const fs::path& to) {
  fs::remove_all(to);
  fs::copy(from, to, fs::copy_options::recursive);
}

/// All files below a folder, by name.
inline std::map<std::string, std::string> content_of(const fs::path& folder) {
  std::map<std::string, std::string> files;
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(folder, error)) {
    if (entry.is_regular_file())
      files[entry.path().lexically_relative(folder).string()] = read_file(entry.path()).value();
  }
  return files;
}

class BestFiles : public ::testing::Test {
 protected:
  BestFiles() { temper_sync_nothing(); }
  fs::path run() const { return folder_ / "run"; }
  fs::path best() const { return run() / kBestFolder; }
  void begin(const StoredRun& stored) { copy_run(stored.root(), run()); }
  Verdicts verdicts() const { return verdicts_on(run(), folder_ / "exported"); }

  test::TemporaryFolder folder_;
};

}  // namespace temper::orchestrator
