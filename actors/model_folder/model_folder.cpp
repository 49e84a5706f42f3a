#include "actors/model_folder/model_folder.hpp"

#include "actors/model_folder/stored_tensors.hpp"
#include "actors/model_folder/weights_file.hpp"
#include "core/file_descriptor.hpp"
#include "core/files.hpp"
#include "core/json_document.hpp"
#include "core/read_at.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <optional>
#include <set>

namespace temper::actors {
namespace {

namespace fs = std::filesystem;

constexpr const char* kGenerationFile = "generation_config.json";

template <class T>
Result<T> within(Result<T> result, const fs::path& file) {
  if (result)
    return result;
  return std::move(result).error().within(file.string());
}
Status within(Status status, const fs::path& file) {
  if (status)
    return status;
  return std::move(status).error().within(file.string());
}

/// True for a file name that stays in its folder.
bool is_plain_name(const std::string& name) {
  return !name.empty() && name.front() != '.' && name.find('/') == std::string::npos;
}

bool holds_weights(const std::string& name) {
  constexpr std::array kEndings{".safetensors",
                                ".safetensors.index.json",
                                ".bin",
                                ".bin.index.json",
                                ".pt",
                                ".pth",
                                ".gguf",
                                ".onnx",
                                ".h5",
                                ".msgpack",
                                ".ckpt"};
  return std::ranges::any_of(kEndings, [&](const char* end) { return name.ends_with(end); });
}

}  // namespace

Result<ModelFolder> ModelFolder::open(const fs::path& folder, std::span<const std::string> ignore) {
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) {
    return Error{ErrorCode::NotFound,
                 folder.string() +
                     " is not a folder; expected a Hugging Face model folder, a "
                     "GGUF file or the name smollm2"};
  }
  ModelFolder model;
  model.path_ = folder;
  TEMPER_TRY(const std::string config, read_file(folder / kConfigFile));
  TEMPER_TRY(model.config_, within(parse_config_json(config, ignore), folder / kConfigFile));
  if (fs::exists(folder / kGenerationFile, ignored)) {
    TEMPER_TRY(const std::string text, read_file(folder / kGenerationFile));
    TEMPER_TRY(auto end, within(parse_end_tokens(text), folder / kGenerationFile));
    if (!end.empty())
      model.config_.end_tokens = std::move(end);
  }
  if (fs::exists(folder / kWeightsIndex, ignored)) {
    TEMPER_TRY(const std::string index, read_file(folder / kWeightsIndex));
    TEMPER_TRY_STATUS(within(model.read_index(index), folder / kWeightsIndex));
    return model;
  }
  if (!fs::exists(folder / kWeightsFile, ignored)) {
    const bool pickled = fs::exists(folder / "pytorch_model.bin", ignored) ||
                         fs::exists(folder / "pytorch_model.bin.index.json", ignored);
    return Error{
        ErrorCode::NotFound,
        fmt::format(
            "{} has neither {} nor {}{}",
            folder.string(),
            kWeightsFile,
            kWeightsIndex,
            pickled ? "; pytorch_model.bin is not supported, save the model as safetensors" : "")};
  }
  model.shards_.emplace_back(kWeightsFile);
  return model;
}

Status ModelFolder::read_index(std::string_view text) {
  const nlohmann::json index = parse_json(text);
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object())
    return corrupt("expected a JSON object with a `weight_map`");
  std::set<std::string> names;
  for (const auto& [tensor, file] : index["weight_map"].items()) {
    if (!file.is_string() || !is_plain_name(file.get<std::string>()))
      return corrupt(fmt::format(
          "tensor '{}': expected a file name in this folder, found {}", tensor, file.dump()));
    shard_of_[tensor] = file.get<std::string>();
    names.insert(file.get<std::string>());
  }
  shards_.assign(names.begin(), names.end());
  return {};
}

bool ModelFolder::has_tokenizer() const {
  std::error_code ignored;
  return fs::exists(path_ / kTokenizerFile, ignored);
}

namespace {

struct Shards {
  const fs::path& folder;
  const std::vector<std::string>& files;
  const std::map<std::string, std::string>& of;  ///< File names by tensor; empty without an index.
};

/// Passes the tensors of each file to `reader`, which must find every one in the end.
Status feed_shards(const Shards& shards, TensorReader& reader, Values values) {
  for (const std::string& shard : shards.files) {
    const fs::path path = shards.folder / shard;
    TEMPER_TRY(WeightsFile file, WeightsFile::open(path));
    TEMPER_TRY(const SafetensorsImage image, within(parse_safetensors(file.bytes()), path));
    std::set<std::string_view> here;
    for (const TensorView& tensor : image.tensors)
      here.insert(tensor.name);
    for (const auto& [tensor, of] : shards.of) {
      if (of == shard && !here.contains(tensor)) {
        return corrupt(fmt::format("{}: tensor '{}': missing, although {} names this file",
                                   path.string(),
                                   tensor,
                                   kWeightsIndex));
      }
    }
    for (const TensorView& tensor : image.tensors) {
      if (!TensorReader::reads(tensor.name))
        continue;
      if (values == Values::Copy)
        TEMPER_TRY_STATUS(file.read(tensor.bytes));
      TEMPER_TRY_STATUS(within(reader.take(tensor), path));
      file.drop(tensor.bytes);
    }
  }
  return within(reader.finish(),
                shards.folder / (shards.of.empty() ? kWeightsFile : kWeightsIndex));
}

}  // namespace

Status ModelFolder::feed(TensorReader& reader) const {
  return feed_shards({path_, shards_, shard_of_}, reader, Values::Copy);
}

Status ModelFolder::read(std::span<const TensorToRead> expected) const {
  TensorReader reader(expected);
  return feed(reader);
}

namespace {

/// Reads the values of one tensor from a file, piece by piece.
class StoredValues {
 public:
  /// The data of `tensor` starts at byte `begin` of `file`.
  static Result<StoredValues> open(fs::path file, const TensorView& tensor, std::size_t begin) {
    StoredValues values;
    values.fd_ = FileDescriptor(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
    if (!values.fd_.is_open())
      return io_error("cannot open " + file.string(), errno);
    values.file_ = std::move(file);
    values.name_ = tensor.name;
    values.type_ = tensor.type;
    values.at_ = begin;
    values.left_ = tensor.bytes.size();
    return values;
  }

  const fs::path& file() const { return file_; }
  const std::string& name() const { return name_; }

  /// The next values; empty at the end. Error Corrupt: a value is not finite.
  Result<std::span<const float>> next() {
    const std::size_t width = type_ == StoredType::Float32 ? 4 : 2;
    const std::size_t wanted = std::min(left_, kPiece * width);
    bytes_.resize(wanted);
    const auto read = read_at(fd_, bytes_, at_);
    if (!read)
      return Error(read.error()).within(file_.string());
    if (*read < wanted)
      return corrupt(file_.string() + " was truncated while it was read");
    at_ += wanted;
    left_ -= wanted;
    values_.resize(wanted / width);
    copy_values({name_, {}, type_, bytes_}, values_);
    const auto bad = std::ranges::find_if_not(values_, [](float x) { return std::isfinite(x); });
    if (bad != values_.end()) {
      return corrupt(fmt::format("{}: tensor '{}': expected finite values, found {} at element {}",
                                 file_.string(),
                                 name_,
                                 *bad,
                                 passed_ + static_cast<std::size_t>(bad - values_.begin())));
    }
    passed_ += values_.size();
    return std::span<const float>(values_);
  }

 private:
  static constexpr std::size_t kPiece = std::size_t{1} << 20;

  StoredValues() = default;

  FileDescriptor fd_;
  fs::path file_;
  std::string name_;
  StoredType type_ = StoredType::Float32;
  std::size_t at_ = 0, left_ = 0, passed_ = 0;
  std::vector<std::byte> bytes_;
  std::vector<float> values_;
};

/// Checks that all values are finite.
Status check_finite(StoredValues values) {
  for (;;) {
    TEMPER_TRY(const auto piece, values.next());
    if (piece.empty())
      return {};
  }
}

/// Checks that a stored head equals the embedding that it is tied to.
Status check_tied(StoredValues embedding, StoredValues head) {
  for (;;) {
    TEMPER_TRY(const auto expected, embedding.next());
    TEMPER_TRY(const auto found, head.next());
    if (!std::ranges::equal(expected, found)) {
      return corrupt(
          fmt::format("{}: tensor '{}': differs from the tensor that config.json ties "
                      "it to ('{}')",
                      head.file().string(),
                      head.name(),
                      embedding.name()));
    }
    if (expected.empty())
      return {};
  }
}

/// Checks all values. Requires: names and shapes match the layout.
Status check_values(const Shards& shards, const Layout& layout) {
  std::optional<StoredValues> embedding, head;
  const std::string tied_to = layout.model().tie_embeddings ? layout.stored().front().name : "";
  for (const std::string& shard : shards.files) {
    const fs::path file = shards.folder / shard;
    TEMPER_TRY(const WeightsFile weights, WeightsFile::open(file));
    TEMPER_TRY(const SafetensorsImage image, within(parse_safetensors(weights.bytes()), file));
    for (const TensorView& tensor : image.tensors) {
      if (!TensorReader::reads(tensor.name))
        continue;
      const auto begin = static_cast<std::size_t>(tensor.bytes.data() - weights.bytes().data());
      TEMPER_TRY(StoredValues values, StoredValues::open(file, tensor, begin));
      if (!tied_to.empty() && tensor.name == tied_to)
        embedding = std::move(values);
      else if (!tied_to.empty() && tensor.name == kHeadTensor)
        head = std::move(values);
      else if (Status finite = check_finite(std::move(values)); !finite)
        return finite;
    }
  }
  if (embedding && head)
    return check_tied(*std::move(embedding), *std::move(head));
  for (auto* const one : {&embedding, &head}) {
    if (*one) {
      TEMPER_TRY_STATUS(check_finite(*std::move(*one)));
    }
  }
  return {};
}

}  // namespace

Status ModelFolder::check_tensors(const Layout& layout) const {
  TensorReader reader(tensors_to_check(layout), Values::Skip);
  return feed_shards({path_, shards_, shard_of_}, reader, Values::Skip);
}

Status ModelFolder::check(const Layout& layout) const {
  TEMPER_TRY_STATUS(check_tensors(layout));
  return check_values({path_, shards_, shard_of_}, layout);
}

std::vector<std::string> ModelFolder::carried_files() const {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(path_, ignored)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_regular_file(ignored) && is_plain_name(name) && !holds_weights(name) &&
        name != kConfigFile)
      names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

Status ModelFolder::link_to(const fs::path& to) const {
  std::vector<std::string> names = carried_files();
  names.insert(names.end(), shards_.begin(), shards_.end());
  if (!shard_of_.empty())
    names.emplace_back(kWeightsIndex);
  names.emplace_back(kConfigFile);
  for (const std::string& name : names) {
    std::error_code error;
    const fs::path from = fs::canonical(path_ / name, error);
    if (!error) {
      fs::remove(to / name, error);
      fs::create_hard_link(from, to / name, error);
    }
    if (error)
      fs::copy_file(path_ / name, to / name, error);
    if (error)
      return io_error(fmt::format("cannot copy {} to {}", (path_ / name).string(), to.string()),
                      error.value());
  }
  return {};
}

Status write_model_folder(const fs::path& folder,
                          const ModelFolderToWrite& what,
                          std::span<const TensorToWrite> tensors) {
  const std::int64_t width = what.type == StoredType::Float32 ? 4 : 2;
  const auto bytes_of = [&](const TensorToWrite& tensor) {
    return static_cast<std::int64_t>(tensor.values.size()) * width;
  };
  std::vector<std::span<const TensorToWrite>> shards;
  std::int64_t total = 0;
  std::int64_t last = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::int64_t bytes = bytes_of(tensors[i]);
    if (shards.empty() || last + bytes > what.largest_shard.count()) {
      shards.push_back(tensors.subspan(i, 0));
      last = 0;
    }
    shards.back() = tensors.subspan(static_cast<std::size_t>(shards.back().data() - tensors.data()),
                                    shards.back().size() + 1);
    last += bytes;
    total += bytes;
  }
  nlohmann::ordered_json index = {{"metadata", {{"total_size", total}}},
                                  {"weight_map", nlohmann::ordered_json::object()}};
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const std::string name =
        shards.size() == 1 ? std::string(kWeightsFile)
                           : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size());
    TEMPER_TRY_STATUS(write_file_atomically(folder / name, [&](const ByteSink& sink) {
      return write_safetensors(shards[i], {}, what.type, sink);
    }));
    for (const TensorToWrite& tensor : shards[i])
      index["weight_map"][tensor.name] = name;
  }
  if (shards.size() > 1)
    TEMPER_TRY_STATUS(write_file_atomically(folder / kWeightsIndex, index.dump(2) + "\n"));
  for (const auto& [name, text] : what.files)
    TEMPER_TRY_STATUS(write_file_atomically(folder / name, text));
  return write_file_atomically(folder / kConfigFile, with_stored_type(what.config_json, what.type));
}

}  // namespace temper::actors
