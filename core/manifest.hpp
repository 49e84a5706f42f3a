// A manifest lists the files that belong together, with the size and hash of each, facts that the
// writer adds, and a hash of itself. It is written last, so a folder with a valid manifest is
// complete. It is checked when the files are read, so any changed byte is detected. Example:
//
//   temper manifest 1
//   fact version 40
//   file 4711 99aa06d3014798d86001c324468d497f model.safetensors
//   end 6d78d6a38b3c7ef1a9c2c5b0d1fe0a35
//
// Facts and files are sorted by name. `end` has the XXH3-128 of everything before it.
#pragma once

#include "core/hash.hpp"
#include "core/result.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace temper {

/// Name of the manifest in a folder that is written once, such as a checkpoint.
inline constexpr std::string_view kFolderManifest = "manifest";

struct FileSum {
  std::string name;  ///< Relative to the folder of the manifest.
  std::int64_t bytes = 0;
  Hash128 hash;
  bool operator==(const FileSum&) const = default;
};

struct Manifest {
  std::map<std::string, std::uint64_t> facts;
  std::vector<FileSum> files;
  /// Null if the manifest does not list the file.
  const FileSum* find(std::string_view name) const;
  bool operator==(const Manifest&) const = default;
};

/// Size and hash of every file below `folder`, sorted by name. Syncs each file and folder to disk.
/// Errors: Io if the folder cannot be listed or a file cannot be synced; those of open_to_read().
Result<std::vector<FileSum>> sum_folder(const std::filesystem::path& folder);
/// The same for the given files, relative to `folder`. Error NotFound if one does not exist.
Result<std::vector<FileSum>> sum_files(const std::filesystem::path& folder,
                                       const std::vector<std::string>& names);

/// Requires: names contain no line breaks.
std::string to_text(const Manifest& manifest);
/// Error Corrupt unless the text is byte for byte what to_text() writes.
Result<Manifest> parse_manifest(std::string_view text);
/// Replaces the file atomically. Errors: see write_file_atomically().
Status write_manifest(const std::filesystem::path& path, const Manifest& manifest);
/// Errors name the file: NotFound if it is missing, Corrupt if it is damaged.
Result<Manifest> read_manifest(const std::filesystem::path& path);

/// Compares one file with its entry. Error Corrupt, naming the file, if it is missing or differs.
Status check_file(const std::filesystem::path& folder, const FileSum& file);
/// Checks every listed file. Returns the error of the first damaged one.
Status check_files(const std::filesystem::path& folder, const Manifest& manifest);

/// Reads the manifest of this folder and checks every file that it lists. Returns the manifest.
/// Errors: those of read_manifest() and check_files().
Result<Manifest> check_folder(const std::filesystem::path& folder);

}  // namespace temper
