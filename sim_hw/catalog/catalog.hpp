// Hardware and model descriptions by name, read once from configs/hardware and configs/models.
// One owner; not for several threads at once.
#pragma once

#include "core/result.hpp"
#include "sim_hw/hardware/hardware_spec.hpp"
#include "sim_hw/model/model_spec.hpp"

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace temper::sim_hw {

/// Lower case; letters, digits and dots stay, each run of anything else becomes one dash:
/// "DeepSeek-R1 671B" -> "deepseek-r1-671b". Names are compared in this form.
std::string slug(std::string_view name);

/// Where the constants fitted to a hardware file are kept: for .../hardware/NAME.yaml that is
/// .../calibration/NAME.yaml, for any other NAME.yaml it is NAME.calibration.yaml beside it.
std::filesystem::path calibration_file(const std::filesystem::path& hardware);

class Catalog {
 public:
  /// `configs` holds hardware/ and models/.
  explicit Catalog(std::filesystem::path configs) : configs_(std::move(configs)) {}
  /// The descriptions that ship with this build: those of TEMPER_CONFIGS in the environment, else
  /// of the installation that this program is part of, else of the source tree.
  static Catalog shipped();

  /// By file name without .yaml, by `name` or by one of `aliases`, each as slug(); or by the path
  /// of a YAML file, of a model also of its config.json. Errors name the nearest known name, or
  /// what is wrong with the file.
  Result<const HardwareSpec*> hardware(std::string_view name);
  Result<const ModelSpec*> model(std::string_view name);
  /// Replaces the description of that name, for fits and what-if questions. Pointers stay valid.
  void put(HardwareSpec spec);
  void put(ModelSpec spec);

  /// File names without .yaml, sorted.
  std::vector<std::string> hardware_names() const;
  std::vector<std::string> model_names() const;

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
  template <class Spec>
  void put_in(Section<Spec>& section, std::string_view folder, Spec spec);
  template <class Spec>
  void index(Section<Spec>& section, std::string_view folder);
  std::vector<std::string> names_in(std::string_view folder) const;

  std::filesystem::path configs_;
  Section<HardwareSpec> hardware_;
  Section<ModelSpec> models_;
};

/// The description in a file, whatever its name looks like.
Result<HardwareSpec> hardware_in(const std::filesystem::path& file, Catalog& catalog);

}  // namespace temper::sim_hw
