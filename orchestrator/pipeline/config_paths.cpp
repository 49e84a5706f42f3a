#include "orchestrator/pipeline/config_paths.hpp"

#include "core/home_path.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace temper::orchestrator {
namespace {

/// Matched by suffix: every role has an `engine`, every distribution a `trace`.
constexpr std::array<std::pair<std::string_view, TextKind>, 30> kTexts{
    {{"run_dir", TextKind::Path},
     {"task.path", TextKind::Path},
     {"task.sources.path", TextKind::Path},
     {"model.path", TextKind::Path},
     {"reference.model", TextKind::Path},
     {"teachers.model", TextKind::Path},
     {"evaluation.path", TextKind::Path},
     {"verifier.hidden", TextKind::Path},
     {"terms.hidden", TextKind::Path},
     {"verifier.command", TextKind::Argument},
     {"terms.command", TextKind::Argument},
     {"agent.command", TextKind::Argument},
     {"alarms.on_alarm", TextKind::Argument},
     {"engine.command", TextKind::Argument},
     {"engine.python", TextKind::Path},
     {"engine.folder", TextKind::Path},
     {"engine.data", TextKind::Address},
     {"engine.control", TextKind::Address},
     {"payloads.redis_ca", TextKind::Path},
     {"simulation.cluster", TextKind::Path},
     {"simulation.model", TextKind::Path},
     {"simulation.framework", TextKind::Path},
     {"simulation.clusters.hardware", TextKind::Path},
     {"prompt.trace", TextKind::Path},
     {"response.trace", TextKind::Path},
     {"turn.trace", TextKind::Path},
     {"result.trace", TextKind::Path},
     {"latency.trace", TextKind::Path},
     {"experts.trace", TextKind::Path},
     {"faults.trace", TextKind::Path}}};

class Expander {
 public:
  Expander(const std::string& home, std::vector<ModelIssue>& issues)
      : home_(home), issues_(issues) {}

  template <class T>
  void field(int, std::string_view name, T& value, const std::type_identity_t<FieldMeta<T>>& = {}) {
    const std::size_t key = key_.size(), place = place_.size();
    key_ += fmt::format("{}{}", key_.empty() ? "" : ".", name);
    place_ += fmt::format("{}{}", place_.empty() ? "" : ".", name);
    visit(value);
    key_.resize(key);
    place_.resize(place);
  }

 private:
  template <class T>
  void visit(T& value) {
    if constexpr (OptionalLike<T>) {
      if (value)
        visit(*value);
    } else if constexpr (VectorLike<T>) {
      if constexpr (Described<typename T::value_type> ||
                    std::same_as<typename T::value_type, std::string>) {
        for (std::size_t i = 0; i < value.size(); ++i) {
          const std::size_t place = place_.size();
          place_ += fmt::format("[{}]", i);
          visit(value[i]);
          place_.resize(place);
        }
      }
    } else if constexpr (MapLike<T>) {
      if constexpr (Described<typename T::mapped_type>) {
        for (auto& [name, element] : value) {
          const std::size_t place = place_.size();
          place_ += "." + name;
          visit(element);
          place_.resize(place);
        }
      }
    } else if constexpr (Described<T>) {
      describe(*this, value);
    } else if constexpr (std::same_as<T, std::string>) {
      expand(value);
    }
  }

  void expand(std::string& text) {
    constexpr std::string_view kFile = "file:";
    const TextKind kind = text_kind(key_);
    const bool is_file = kind == TextKind::Address && text.starts_with(kFile);
    const bool is_home = kind == TextKind::Argument && (text == "~" || text.starts_with("~/"));
    if (kind != TextKind::Path && !is_file && !is_home)
      return;
    const std::string_view prefix = is_file ? kFile : "";
    auto path = expand_home(std::string_view(text).substr(prefix.size()), home_);
    if (path)
      text = std::string(prefix) + *path;
    else
      issues_.push_back({place_, path.error().context});
  }

  const std::string& home_;
  std::vector<ModelIssue>& issues_;
  std::string key_;    ///< Without list indices and names in maps.
  std::string place_;  ///< With them, as YamlReader counts them.
};

}  // namespace

TextKind text_kind(std::string_view key) {
  for (const auto& [end, kind] : kTexts) {
    const bool ends = key.ends_with(end);
    if (ends && (key.size() == end.size() || key[key.size() - end.size() - 1] == '.'))
      return kind;
  }
  return TextKind::Plain;
}

std::vector<ModelIssue> expand_paths(PipelineConfig& config, const std::string& home) {
  std::vector<ModelIssue> issues;
  Expander expander(home, issues);
  describe(expander, config);
  return issues;
}

}  // namespace temper::orchestrator
