// A manifest proves files that belong together: the size and hash of each, facts of whoever wrote
// them, and a hash of itself. Written last, so that a folder with a whole manifest is a whole
// folder; checked when the files are read, so that any changed byte is found. An example:
//
//   temper manifest 1
//   fact version 40
//   file 4711 99aa06d3014798d86001c324468d497f model.safetensors
//   end 6d78d6a38b3c7ef1a9c2c5b0d1fe0a35
//
// Facts are in the order of their names; files in that of theirs. `end`: XXH3-128 of all before.
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

/// Of a folder that is written once, as a checkpoint is: its name in that folder.
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
  /// None: the manifest does not have it.
  const FileSum* find(std::string_view name) const;
  bool operator==(const Manifest&) const = default;
};

/// Every file below `folder`, by name; their bytes are on the disk when this returns.
Result<std::vector<FileSum>> sum_folder(const std::filesystem::path& folder);
/// The same of these files of it, which must be there.
Result<std::vector<FileSum>> sum_files(const std::filesystem::path& folder,
                                       const std::vector<std::string>& names);

/// Requires: names hold no line break.
std::string to_text(const Manifest& manifest);
/// Error: the text is not, byte for byte, what to_text() makes.
Result<Manifest> parse_manifest(std::string_view text);
Status write_manifest(const std::filesystem::path& path, const Manifest& manifest);
/// Errors name the file: it is not there (NotFound) or damaged (Corrupt).
Result<Manifest> read_manifest(const std::filesystem::path& path);

/// Errors name the file: it is not there, or not what its manifest says (Corrupt).
Status check_file(const std::filesystem::path& folder, const FileSum& file);
/// All of them. Error: the first that is damaged.
Status check_files(const std::filesystem::path& folder, const Manifest& manifest);

/// All that the manifest in this folder names; its content.
Result<Manifest> check_folder(const std::filesystem::path& folder);

}  // namespace temper
