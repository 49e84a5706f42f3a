#include "actors/model_folder/gguf_reader.hpp"

#include "actors/model_folder/config_json.hpp"
#include "actors/model_folder/gguf_names.hpp"
#include "actors/model_folder/gguf_rows.hpp"
#include "actors/model_folder/gguf_tokenizer.hpp"
#include "actors/model_folder/model_folder.hpp"
#include "core/files.hpp"
#include "core/json_document.hpp"
#include "core/read_at.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>

namespace temper::actors {
namespace {

namespace fs = std::filesystem;

/// Reads parts of a file. It is not mapped, because a mapped file that is truncated meanwhile
/// raises SIGBUS.
class FileBytes {
 public:
  static Result<FileBytes> open(const fs::path& path) {
    FileBytes file;
    TEMPER_TRY(file.fd_, open_to_read(path));
    struct stat status {};
    if (::fstat(file.fd_.get(), &status) != 0)
      return io_error("cannot inspect " + path.string(), errno);
    file.size_ = static_cast<std::uint64_t>(status.st_size);
    return file;
  }
  std::uint64_t size() const { return size_; }

  Result<std::vector<std::byte>> read(std::uint64_t begin, std::uint64_t count) const {
    std::vector<std::byte> bytes(static_cast<std::size_t>(count));
    TEMPER_TRY(const std::size_t filled, read_at(fd_, bytes, begin));
    if (filled < bytes.size())
      return corrupt("it was truncated while it was read");
    return bytes;
  }

 private:
  FileDescriptor fd_;
  std::uint64_t size_ = 0;
};

/// The weights of a model in a GGUF file.
class GgufWeights {
 public:
  GgufWeights(const FileBytes& bytes, const GgufFile& file, const Layout& layout)
      : bytes_(bytes), file_(file), layout_(layout) {}

  /// Error Corrupt or Unsupported: a tensor is missing, unknown, or of another shape.
  Status check() const {
    std::map<std::string_view, bool> known;
    for (const TensorSpec& spec : layout_.stored()) {
      TEMPER_TRY(const GgufTensor* const tensor, find(spec));
      known[tensor->name] = true;
    }
    for (const auto& [name, _] : file_.tensors()) {
      if (name == "rope_freqs.weight") {
        return Error{ErrorCode::Unsupported,
                     "tensor 'rope_freqs.weight': Temper does not support rope factors in GGUF "
                     "files; use the model's Hugging Face folder"};
      }
      if (!known.contains(name))
        return corrupt(fmt::format("tensor '{}': unknown for this model", name));
    }
    return {};
  }

  /// Bfloat16 if it represents every value exactly.
  Result<StoredType> type() const {
    for (const auto& [name, tensor] : file_.tensors()) {
      if (tensor.type != GgufType::Float32 && tensor.type != GgufType::Bfloat16)
        return StoredType::Float32;
    }
    for (const auto& [name, tensor] : file_.tensors()) {
      if (tensor.type != GgufType::Float32)
        continue;
      TEMPER_TRY(const auto values, read(tensor));
      const auto is_short = [](float x) { return (std::bit_cast<std::uint32_t>(x) << 16) == 0; };
      if (!std::ranges::all_of(values, is_short))
        return StoredType::Float32;
    }
    return StoredType::Bfloat16;
  }

  /// Appends all tensors to a safetensors file.
  Status write(AppendFile& out, StoredType type) const {
    std::vector<TensorShape> shapes;
    for (const TensorSpec& spec : layout_.stored())
      shapes.push_back({spec.name, spec.shape, type});
    TEMPER_TRY_STATUS(out.append(write_safetensors_header(shapes, {})));
    const bool pairs = layout_.model().architecture == Architecture::Llama;
    std::string stored;
    for (const TensorSpec& spec : layout_.stored()) {
      TEMPER_TRY(const GgufTensor* const tensor, find(spec));
      TEMPER_TRY(std::vector<float> values, read(*tensor));
      if (pairs && (spec.name.ends_with("q_proj.weight") || spec.name.ends_with("k_proj.weight")))
        part_pairs(values, spec.shape.front(), layout_.head_dim());
      stored.resize(values.size() * (type == StoredType::Float32 ? 4 : 2));
      store_values(values, type, stored);
      TEMPER_TRY_STATUS(out.append(stored));
    }
    return out.sync();
  }

 private:
  Result<const GgufTensor*> find(const TensorSpec& spec) const {
    TEMPER_TRY(const std::string name, gguf_name_of(spec.name));
    const auto at = file_.tensors().find(name);
    if (at == file_.tensors().end())
      return corrupt(fmt::format("tensor '{}': missing", name));
    if (at->second.shape != spec.shape) {
      return corrupt(fmt::format("tensor '{}': expected shape [{}], found [{}]",
                                 name,
                                 fmt::join(spec.shape, ", "),
                                 fmt::join(at->second.shape, ", ")));
    }
    return &at->second;
  }

  Result<std::vector<float>> read(const GgufTensor& tensor) const {
    TEMPER_TRY(const auto bytes, bytes_.read(tensor.begin, tensor.bytes));
    std::vector<float> values(static_cast<std::size_t>(tensor.elements()));
    dequantize(tensor.type, bytes, values);
    const auto bad = std::ranges::find_if_not(values, [](float x) { return std::isfinite(x); });
    if (bad != values.end()) {
      return corrupt(fmt::format("tensor '{}': expected finite values, found {} at element {}",
                                 tensor.name,
                                 *bad,
                                 bad - values.begin()));
    }
    return values;
  }

  const FileBytes& bytes_;
  const GgufFile& file_;
  const Layout& layout_;
};

std::string generation_config_of(const std::vector<std::int32_t>& ends) {
  nlohmann::ordered_json out = nlohmann::ordered_json::object();
  if (!ends.empty())
    out["eos_token_id"] = ends;
  return out.dump(2) + "\n";
}

Status convert_file(const fs::path& path, const fs::path& folder) {
  TEMPER_TRY(const FileBytes bytes, FileBytes::open(path));
  TEMPER_TRY(const auto head, bytes.read(0, std::min(bytes.size(), GgufFile::kLargestMetadata)));
  TEMPER_TRY(const GgufFile file, GgufFile::parse(head, bytes.size()));
  ConfigJson config;
  TEMPER_TRY(config.model, read_gguf_config(file));
  TEMPER_TRY(const GgufTokenizer tokenizer, read_gguf_tokenizer(file));
  config.end_tokens = tokenizer.end_tokens;
  // The bounds of a model folder, before anything is written.
  TEMPER_TRY_STATUS([&]() -> Status {
    const auto parsed = parse_config_json(write_config_json(config));
    return parsed ? Status() : Status(parsed.error());
  }());
  TEMPER_TRY(const Layout layout, Layout::make(config.model, 0));
  const GgufWeights weights(bytes, file, layout);
  TEMPER_TRY_STATUS(weights.check());
  TEMPER_TRY(config.type, weights.type());
  TEMPER_TRY(AppendFile out, AppendFile::open(folder / kWeightsFile, 0));
  TEMPER_TRY_STATUS(weights.write(out, config.type));
  for (const auto& [name, text] : tokenizer.files)
    TEMPER_TRY_STATUS(write_file_atomically(folder / name, text));
  TEMPER_TRY_STATUS(write_file_atomically(folder / "generation_config.json",
                                          generation_config_of(tokenizer.end_tokens)));
  return write_file_atomically(folder / kConfigFile, write_config_json(config));
}

}  // namespace

Status convert_gguf(const fs::path& file, const fs::path& folder) {
  Status converted = convert_file(file, folder);
  if (converted)
    return converted;
  return std::move(converted).error().within(file.string());
}

}  // namespace temper::actors
