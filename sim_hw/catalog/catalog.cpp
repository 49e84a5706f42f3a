#include "sim_hw/catalog/catalog.hpp"

#include "core/nearest_name.hpp"
#include "core/yaml_file.hpp"
#include "sim_hw/model/hf_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <system_error>

namespace temper::sim_hw {
namespace {

constexpr std::string_view kHardware = "hardware";
constexpr std::string_view kModels = "models";
constexpr std::string_view kFrameworks = "frameworks";
constexpr std::string_view kCalibration = "calibration";

template <class Spec>
Result<Spec> load(const std::filesystem::path& path, const std::filesystem::path& /*configs*/) {
  return read_yaml_file<Spec>(path);
}

/// Reads a YAML description or a Hugging Face config.json.
template <>
Result<ModelSpec> load<ModelSpec>(const std::filesystem::path& path,
                                  const std::filesystem::path& /*configs*/) {
  return path.extension() == ".json" ? model_of_config_file(path) : read_yaml_file<ModelSpec>(path);
}

template <>
Result<FrameworkSpec> load<FrameworkSpec>(const std::filesystem::path& path,
                                          const std::filesystem::path& /*configs*/) {
  return read_framework(path);
}

/// "hardware" of "hardware"; "model" of "models".
std::string_view noun(std::string_view folder) {
  if (folder.ends_with('s'))
    folder.remove_suffix(1);
  return folder;
}

/// The operator constants of another hardware: from the file beside `fitted` if there is one, else
/// from the shipped calibration.
Result<Calibration> taken_over(const std::string& name,
                               const std::filesystem::path& fitted,
                               const std::filesystem::path& configs) {
  const std::string file = name + ".yaml";
  const std::filesystem::path beside = fitted.parent_path() / file;
  std::error_code failed;
  const bool is_calibration = fitted.parent_path().filename() == kCalibration;
  if (is_calibration && std::filesystem::exists(beside, failed))
    return read_yaml_file<Calibration>(beside);
  const std::filesystem::path shipped = configs / kCalibration / file;
  if (std::filesystem::exists(shipped, failed))
    return read_yaml_file<Calibration>(shipped);
  return Error{
      ErrorCode::NotFound,
      fmt::format("{}: taken_over_from: no fitted constants of `{}`; expected {}; create them "
                  "with `temper calibrate`",
                  fitted.string(),
                  name,
                  shipped.string())};
}

/// Adds the fitted constants if there are any.
template <>
Result<HardwareSpec> load<HardwareSpec>(const std::filesystem::path& path,
                                        const std::filesystem::path& configs) {
  TEMPER_TRY(HardwareSpec spec, read_yaml_file<HardwareSpec>(path));
  const std::filesystem::path fitted = calibration_file(path);
  std::error_code failed;
  if (!std::filesystem::exists(fitted, failed))
    return spec;
  TEMPER_TRY(Calibration calibration, read_yaml_file<Calibration>(fitted));
  if (const std::string& from = calibration.taken_over_from; !from.empty()) {
    TEMPER_TRY(const Calibration other, taken_over(from, fitted, configs));
    calibration.operators = other.operators;
    if (calibration.fits.empty())
      calibration.fits.push_back({"operators", "taken over from " + from, 0, 0, 0});
  }
  spec.constants.operators = calibration.operators;
  spec.fits.insert(spec.fits.end(), calibration.fits.begin(), calibration.fits.end());
  return spec;
}

bool is_path(std::string_view name) {
  return name.ends_with(".yaml") || name.ends_with(".yml") || name.ends_with(".json") ||
         name.find('/') != std::string_view::npos;
}

}  // namespace

std::filesystem::path calibration_file(const std::filesystem::path& hardware) {
  const std::filesystem::path folder = hardware.parent_path();
  if (folder.filename() == kHardware)
    return folder.parent_path() / kCalibration / hardware.filename();
  return folder / (hardware.stem().string() + ".calibration.yaml");
}

std::string slug(std::string_view name) {
  std::string out;
  for (const char c : name) {
    const bool upper = c >= 'A' && c <= 'Z';
    const bool kept = upper || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.';
    if (kept)
      out += upper ? static_cast<char>(c - 'A' + 'a') : c;
    else if (!out.empty() && out.back() != '-')
      out += '-';
  }
  while (!out.empty() && out.back() == '-')
    out.pop_back();
  return out;
}

Catalog Catalog::shipped() {
  const char* const chosen = std::getenv("TEMPER_CONFIGS");
  if (chosen != nullptr && *chosen != '\0')
    return Catalog(chosen);
  // An installed program: PREFIX/bin/temper uses PREFIX/share/temper/configs.
  std::error_code failed;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", failed);
  const auto installed = program.parent_path().parent_path() / "share/temper/configs";
  if (!failed && std::filesystem::is_directory(installed, failed))
    return Catalog(installed);
  return Catalog(TEMPER_CONFIGS_DIR);
}

std::vector<std::string> Catalog::names_in(std::string_view folder) const {
  std::vector<std::string> names;
  std::error_code failed;
  for (std::filesystem::directory_iterator it(configs_ / folder, failed), end; !failed && it != end;
       it.increment(failed)) {
    if (it->path().extension() == ".yaml")
      names.push_back(it->path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> Catalog::hardware_names() const {
  return names_in(kHardware);
}

std::vector<std::string> Catalog::model_names() const {
  return names_in(kModels);
}

std::vector<std::string> Catalog::framework_names() const {
  return names_in(kFrameworks);
}

/// An unreadable file is indexed by its file name only; a lookup reports its error.
template <class Spec>
void Catalog::index(Section<Spec>& section, std::string_view folder) {
  if (std::exchange(section.indexed, true))
    return;
  for (const std::string& stem : names_in(folder)) {
    const std::string key = slug(stem);
    section.keys[key] = key;
    Result<Spec> spec = load<Spec>(configs_ / folder / (stem + ".yaml"), configs_);
    if (!spec)
      continue;
    section.keys.emplace(slug(spec->name), key);
    for (const std::string& alias : spec->aliases)
      section.keys.emplace(slug(alias), key);
    section.specs.emplace(key, std::move(*spec));
  }
}

template <class Spec>
bool Catalog::is_name_with_slash(Section<Spec>& section,
                                 std::string_view folder,
                                 std::string_view name) {
  std::error_code failed;
  if (std::filesystem::exists(name, failed))
    return false;
  index(section, folder);
  return section.keys.contains(slug(name));
}

template <class Spec>
Result<const Spec*> Catalog::find(Section<Spec>& section,
                                  std::string_view folder,
                                  std::string_view name) {
  if (is_path(name) && !is_name_with_slash(section, folder, name)) {
    const std::string key(name);
    auto known = section.specs.find(key);
    if (known == section.specs.end()) {
      TEMPER_TRY(Spec spec, load<Spec>(key, configs_));
      known = section.specs.emplace(key, std::move(spec)).first;
    }
    return &known->second;
  }
  // The file name takes precedence over other names, so most lookups read one file.
  if (!section.indexed && !section.specs.contains(slug(name))) {
    const auto path = configs_ / folder / (slug(name) + ".yaml");
    std::error_code failed;
    if (std::filesystem::exists(path, failed)) {
      TEMPER_TRY(Spec spec, load<Spec>(path, configs_));
      section.specs.emplace(slug(name), std::move(spec));
    }
  }
  if (const auto known = section.specs.find(slug(name)); known != section.specs.end())
    return &known->second;
  index(section, folder);
  const auto key = section.keys.find(slug(name));
  if (key == section.keys.end()) {
    std::vector<std::string> known;
    for (const auto& [each, unused] : section.keys)
      known.push_back(each);
    const auto nearest = nearest_name(slug(name), known);
    return Error{ErrorCode::NotFound,
                 fmt::format("unknown {} `{}`; {}",
                             noun(folder),
                             name,
                             nearest ? fmt::format("did you mean `{}`?", *nearest)
                                     : fmt::format("known are {}", quoted_list(names_in(folder))))};
  }
  const auto spec = section.specs.find(key->second);
  if (spec != section.specs.end())
    return &spec->second;
  // Indexed by file name but unreadable: read it again to report the error.
  for (const std::string& stem : names_in(folder)) {
    if (slug(stem) == key->second) {
      TEMPER_TRY(Spec read, load<Spec>(configs_ / folder / (stem + ".yaml"), configs_));
      return &section.specs.emplace(key->second, std::move(read)).first->second;
    }
  }
  return Error{ErrorCode::NotFound,
               fmt::format("{} `{}`: its file was removed from {} while the program ran",
                           noun(folder),
                           name,
                           (configs_ / folder).string())};
}

template <class Spec>
void Catalog::put_in(Section<Spec>& section, std::string_view folder, Spec spec) {
  index(section, folder);
  const std::string key = section.keys.emplace(slug(spec.name), slug(spec.name)).first->second;
  section.specs[key] = std::move(spec);
}

Result<const HardwareSpec*> Catalog::hardware(std::string_view name) {
  return find(hardware_, kHardware, name);
}

Result<const ModelSpec*> Catalog::model(std::string_view name) {
  return find(models_, kModels, name);
}

Result<const FrameworkSpec*> Catalog::framework(std::string_view name) {
  return find(frameworks_, kFrameworks, name);
}

Result<HardwareSpec> hardware_in(const std::filesystem::path& file, Catalog& catalog) {
  const std::string text = file.string();
  TEMPER_TRY(const HardwareSpec* spec,
             catalog.hardware(text.find('/') == std::string::npos ? "./" + text : text));
  return *spec;
}

void Catalog::put(HardwareSpec spec) {
  put_in(hardware_, kHardware, std::move(spec));
}

void Catalog::put(ModelSpec spec) {
  put_in(models_, kModels, std::move(spec));
}

}  // namespace temper::sim_hw
