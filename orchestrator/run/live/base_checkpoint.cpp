#include "orchestrator/run/live/base_checkpoint.hpp"

#include "core/files.hpp"
#include "core/hash.hpp"
#include "core/manifest.hpp"
#include "core/msgpack.hpp"
#include "core/yaml.hpp"
#include "orchestrator/run/processes/run_program.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;

/// Equal inputs, equal name. The first part is raised when pretraining itself changes.
std::string cache_name(const PipelineConfig& c) {
  const std::string inputs = encode(c.model) + encode(c.task) + encode(c.pretrain) +
                             encode(c.sampling.temperature) + encode(c.seed);
  return fmt::format("base-v1-{:016x}.safetensors", hash64(inputs));
}

}  // namespace

fs::path cache_folder() {
  if (const char* own = std::getenv("TEMPER_CACHE"))
    return own;
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"))
    return fs::path(xdg) / "temper";
  if (const char* home = std::getenv("HOME"))
    return fs::path(home) / ".cache" / "temper";
  return fs::temp_directory_path() / "temper-cache";
}

namespace {

fs::path manifest_of(const fs::path& cached) {
  return cached.string() + ".manifest";
}

/// The image that is kept there, if it is what was put there.
Result<std::string> read_cached(const fs::path& cached) {
  TEMPER_TRY(const Manifest manifest, read_manifest(manifest_of(cached)));
  TEMPER_TRY(std::string image, read_file(cached));
  const FileSum* sum = manifest.find(cached.filename().string());
  if (sum == nullptr || sum->hash != hash128(image))
    return corrupt(cached.string() + " is not what was put there");
  return image;
}

/// Pretrains into the cache, and returns the image.
Result<std::string> make_cached(const PipelineConfig& config,
                                const BaseCheckpointOptions& options,
                                const fs::path& cached) {
  const fs::path yaml = options.copy_to.string() + ".config.yaml";
  const fs::path made = fmt::format("{}.{}", cached.string(), getpid());
  TEMPER_TRY_STATUS(write_file_atomically(yaml, to_yaml(config)));
  ChildSpec spec;
  spec.name = "pretrain";
  spec.command = {options.worker.string(),
                  "pretrain",
                  "--config",
                  yaml.string(),
                  "--out",
                  made.string(),
                  "--parent",
                  std::to_string(getpid())};
  spec.log = options.log;
  const Status status = run_program(spec, "pretraining", options.on_progress);
  std::error_code ignored;
  fs::remove(yaml, ignored);
  if (!status)
    return status.error();
  TEMPER_TRY(std::string image, read_file(made));
  TEMPER_TRY_STATUS(write_file_atomically(cached, image));
  fs::remove(made, ignored);
  const FileSum sum{
      cached.filename().string(), static_cast<std::int64_t>(image.size()), hash128(image)};
  TEMPER_TRY_STATUS(write_manifest(manifest_of(cached), {{}, {sum}}));
  return image;
}

}  // namespace

Status provide_base_checkpoint(const PipelineConfig& config, const BaseCheckpointOptions& options) {
  TEMPER_TRY_STATUS(make_folder(cache_folder()));
  const fs::path cached = cache_folder() / cache_name(config);
  auto image = read_cached(cached);
  if (!image)
    image = make_cached(config, options, cached);
  if (!image)
    return std::move(image).error();
  return write_file_atomically(options.copy_to, *image);
}

}  // namespace temper::orchestrator
