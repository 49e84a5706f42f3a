#include "orchestrator/run/outside_inputs.hpp"

#include "core/files.hpp"
#include "core/hash.hpp"
#include "orchestrator/pipeline/teachers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kHashAtOnce = std::size_t{1} << 20;

Status add_file(const fs::path& path, Hasher64& to) {
  TEMPER_TRY(FileReader reader, FileReader::open(path));
  std::string piece;
  for (;;) {
    piece.clear();
    TEMPER_TRY(const std::size_t read, reader.read(piece, kHashAtOnce));
    if (read == 0)
      return {};
    to.add(std::as_bytes(std::span(piece)));
  }
}

/// What a model computes depends on these; other files, such as a README, may change.
bool is_of_model(const fs::path& path) {
  constexpr std::array<std::string_view, 5> kExtensions{
      ".safetensors", ".bin", ".gguf", ".json", ".py"};
  return std::ranges::find(kExtensions, path.extension().string()) != kExtensions.end();
}

Result<std::uint64_t> digest_of(const fs::path& path) {
  Hasher64 hasher;
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    TEMPER_TRY_STATUS(add_file(path, hasher));
    return hasher.digest();
  }
  std::vector<fs::path> files;
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    if (it->is_regular_file(error) && is_of_model(it->path()))
      files.push_back(it->path());
  }
  if (error)
    return io_error("cannot list " + path.string(), error.value());
  std::ranges::sort(files);
  for (const fs::path& file : files) {
    const std::string name = file.filename().string();
    hasher.add(std::as_bytes(std::span(name)));
    TEMPER_TRY_STATUS(add_file(file, hasher));
  }
  return hasher.digest();
}

std::map<std::string, std::string> paths_of(const PipelineConfig& config) {
  std::map<std::string, std::string> paths;
  const auto add = [&](const std::string& key, const std::string& path) {
    if (!path.empty())
      paths.emplace(key, path);
  };
  if (config.task.kind == actors::TaskKind::Jsonl) {
    if (config.task.sources.empty())
      add("task.path", config.task.path);
    for (const auto& [name, source] : config.task.sources)
      add(fmt::format("task.sources.{}.path", name), source.path);
  }
  if (config.evaluation.every > 0)
    add("evaluation.path", config.evaluation.path);
  for (const Teacher& teacher : teachers_of(config)) {
    if (teacher.replicas > 0)
      add(teacher.model_key(), teacher.model);
  }
  return paths;
}

}  // namespace

Result<std::map<std::string, std::uint64_t>> digest_outside_inputs(const PipelineConfig& config) {
  std::map<std::string, std::uint64_t> digests;
  for (const auto& [key, path] : paths_of(config)) {
    auto digest = digest_of(path);
    if (!digest)
      return Error(digest.error()).within(key);
    digests.emplace(key, *digest);
  }
  return digests;
}

Status check_outside_inputs(const PipelineConfig& config,
                            const std::map<std::string, std::uint64_t>& recorded) {
  for (const auto& [key, path] : paths_of(config)) {
    const auto before = recorded.find(key);
    if (before == recorded.end())
      continue;
    const auto now = digest_of(path);
    if (!now)
      return Error(now.error()).within(key);
    if (*now != before->second) {
      return invalid_input(fmt::format(
          "{}: {} has changed since the run started; restore it, or start a new run with "
          "--from",
          key,
          path));
    }
  }
  return {};
}

}  // namespace temper::orchestrator
