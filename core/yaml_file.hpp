// Reads a YAML file into one described struct.
#pragma once

#include "core/files.hpp"
#include "core/yaml.hpp"

#include <filesystem>
#include <utility>

namespace temper {

/// Errors: those of read_file(); InvalidInput that lists every issue with its line.
template <class T>
Result<T> read_yaml_file(const std::filesystem::path& path) {
  TEMPER_TRY(const std::string text, read_file(path));
  YamlValue<T> read = read_yaml<T>(path.string(), text);
  if (!read.issues.empty())
    return invalid_input(render(locate(read.document, std::move(read.issues))));
  return std::move(read.value);
}

/// For files that a program wrote. Errors: those of read_file(); InvalidInput with the first issue
/// only, without its line.
template <class T>
Result<T> read_own_yaml_file(const std::filesystem::path& path) {
  TEMPER_TRY(const std::string text, read_file(path));
  YamlValue<T> read = read_yaml<T>(path.string(), text);
  if (!read.issues.empty())
    return invalid_input(path.string() + ": " + read.issues.front().message);
  return std::move(read.value);
}

}  // namespace temper
