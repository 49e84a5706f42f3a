// Finds descriptions of hardware, models and frameworks by name and reads each file once. Not
// thread-safe.
#pragma once

#include "core/result.hpp"
#include "sim_hw/framework/framework.hpp"
#include "sim_hw/hardware/hardware_spec.hpp"
#include "sim_hw/model/model_spec.hpp"

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace temper::sim_hw {

/// Normalizes a name: lower case; letters, digits and dots are kept, each run of other characters
/// becomes one dash: "DeepSeek-R1 671B" -> "deepseek-r1-671b". Names are compared in this form.
std::string slug(std::string_view name);

/// File of the constants fitted to a hardware file: .../calibration/NAME.yaml for
/// .../hardware/NAME.yaml, and NAME.calibration.yaml beside any other NAME.yaml.
std::filesystem::path calibration_file(const std::filesystem::path& hardware);

class Catalog {
 public:
  /// `configs` is the folder that holds hardware/, models/ and frameworks/.
  explicit Catalog(std::filesystem::path configs) : configs_(std::move(configs)) {}
  /// The shipped descriptions: the folder in TEMPER_CONFIGS if set, else that of the installation,
  /// else that of the source tree.
  static Catalog shipped();

  /// Looks up a file name without .yaml, a `name` or an alias, each compared as slug(); or a path
  /// to a YAML file (for models also a config.json). Errors name the nearest known name, or the
  /// problem in the file. The pointer is valid as long as the catalog.
  Result<const HardwareSpec*> hardware(std::string_view name);
  Result<const ModelSpec*> model(std::string_view name);
  Result<const FrameworkSpec*> framework(std::string_view name);
  /// Replaces the description with that name, for fits and what-if questions. Pointers stay valid.
  void put(HardwareSpec spec);
  void put(ModelSpec spec);

  /// File names without .yaml, sorted.
  std::vector<std::string> hardware_names() const;
  std::vector<std::string> model_names() const;
  std::vector<std::string> framework_names() const;

  const std::filesystem::path& configs() const { return configs_; }

 private:
  /// One folder of descriptions.
  template <class Spec>
  struct Section {
    std::map<std::string, Spec, std::less<>> specs;  ///< By key: slug of the file name, or a path.
    std::map<std::string, std::string, std::less<>> keys;  ///< Slug of any name -> key.
    bool indexed = false;
  };
  template <class Spec>
  Result<const Spec*> find(Section<Spec>& section, std::string_view folder, std::string_view name);
  /// Such as `64/8 heads`. A file of that name precedes.
  template <class Spec>
  bool is_name_with_slash(Section<Spec>& section, std::string_view folder, std::string_view name);
  template <class Spec>
  void put_in(Section<Spec>& section, std::string_view folder, Spec spec);
  template <class Spec>
  void index(Section<Spec>& section, std::string_view folder);
  std::vector<std::string> names_in(std::string_view folder) const;

  std::filesystem::path configs_;
  Section<HardwareSpec> hardware_;
  Section<ModelSpec> models_;
  Section<FrameworkSpec> frameworks_;
};

/// Reads `file` as a path even if its name looks like a catalog name.
Result<HardwareSpec> hardware_in(const std::filesystem::path& file, Catalog& catalog);

}  // namespace temper::sim_hw
