#include "actors/server/version_folder.hpp"

#include "actors/model_folder/adapter_folder.hpp"
#include "actors/model_folder/gguf.hpp"
#include "actors/model_folder/model_folder.hpp"
#include "core/files.hpp"

#include <fmt/format.h>
#include <unistd.h>

namespace temper::actors {
namespace {

namespace fs = std::filesystem;

std::string_view weights_file(const FolderModel& model) {
  if (model.synthetic)
    return "weights.bin";
  if (model.shape.lora)
    return kAdapterFile;
  return model.gguf ? kGgufFile : kWeightsFile;
}

}  // namespace

Result<Bytes> write_version_folder(const fs::path& folder,
                                   std::span<const std::byte> image,
                                   const FolderModel& model) {
  std::error_code ignored;
  if (fs::exists(folder / "STABLE", ignored))
    return Bytes(0);
  std::string_view bytes(reinterpret_cast<const char*>(image.data()), image.size());
  std::string gguf;
  if (model.gguf) {
    TEMPER_TRY(gguf, write_gguf(image, model.config_json, model.shape.ignore));
    bytes = gguf;
  } else if (!model.synthetic) {
    TEMPER_TRY_STATUS(parse_safetensors(image));
  }
  const fs::path draft =
      folder.parent_path() / fmt::format(".{}-{}", folder.filename().string(), ::getpid());
  TEMPER_TRY_STATUS(make_folder(draft));
  TEMPER_TRY_STATUS(write_file_atomically(draft / weights_file(model), bytes));
  if (model.shape.lora) {
    TEMPER_TRY_STATUS(write_file_atomically(draft / kAdapterConfigFile,
                                            adapter_config_json(*model.shape.lora, "")));
  } else if (!model.synthetic) {
    TEMPER_TRY_STATUS(write_file_atomically(draft / kConfigFile, model.config_json));
  }
  TEMPER_TRY_STATUS(write_file_atomically(draft / "STABLE", ""));
  if (const Status renamed = rename_durably(draft, folder); !renamed) {
    fs::remove_all(draft, ignored);
    if (!fs::exists(folder / "STABLE", ignored))  // Otherwise another process was first.
      return renamed.error();
  }
  return Bytes(static_cast<std::int64_t>(bytes.size()));
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
