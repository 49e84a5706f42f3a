#include "actors/server/version_folder.hpp"

#include "actors/model_folder/stored_tensors.hpp"
#include "core/files.hpp"

#include <fmt/format.h>
#include <unistd.h>

namespace temper::actors {
namespace {

namespace fs = std::filesystem;

/// Its config.json. Error: without one of the base model, an image that is not of this shape.
Result<std::string> config_of(const SafetensorsImage& image, const FolderModel& model) {
  if (!model.config_json.empty())
    return model.config_json;
  TEMPER_TRY(const Layout layout, Layout::make(model.shape, model.vocabulary));
  TensorReader reader(tensors_to_check(layout), Values::Skip);
  TEMPER_TRY_STATUS(reader.take(image));
  TEMPER_TRY_STATUS(reader.finish());
  ConfigJson config{.model = layout.model(), .end_tokens = {model.end_token}};
  config.model.vocabulary = layout.vocabulary();
  config.model.head_dim = layout.head_dim();
  return write_config_json(config);
}

}  // namespace

Result<Bytes> write_version_folder(const fs::path& folder,
                                   std::span<const std::byte> image,
                                   const FolderModel& model) {
  std::error_code ignored;
  if (fs::exists(folder / "STABLE", ignored))
    return Bytes(0);
  std::string config;
  if (!model.synthetic) {
    TEMPER_TRY(const SafetensorsImage tensors, parse_safetensors(image));
    TEMPER_TRY(config, config_of(tensors, model));
  }
  const fs::path draft =
      folder.parent_path() / fmt::format(".{}-{}", folder.filename().string(), ::getpid());
  TEMPER_TRY_STATUS(make_folder(draft));
  TEMPER_TRY_STATUS(
      write_file_atomically(draft / (model.synthetic ? "weights.bin" : kWeightsFile),
                            {reinterpret_cast<const char*>(image.data()), image.size()}));
  if (!model.synthetic)
    TEMPER_TRY_STATUS(write_file_atomically(draft / kConfigFile, config));
  TEMPER_TRY_STATUS(write_file_atomically(draft / "STABLE", ""));
  if (const Status renamed = rename_durably(draft, folder); !renamed) {
    fs::remove_all(draft, ignored);
    if (!fs::exists(folder / "STABLE", ignored))  // Else another process was first.
      return renamed.error();
  }
  return Bytes(static_cast<std::int64_t>(image.size()));
}

Result<std::optional<Canary>> canary_of(std::span<const std::byte> image) {
  TEMPER_TRY(const SafetensorsImage tensors, parse_safetensors(image));
  const auto found = tensors.metadata.find(std::string(kCanaryKey));
  if (found == tensors.metadata.end())
    return std::optional<Canary>();
  TEMPER_TRY(Canary canary, parse_canary(found->second));
  return std::optional<Canary>(std::move(canary));
}

}  // namespace temper::actors
