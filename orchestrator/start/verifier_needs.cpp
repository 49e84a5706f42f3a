#include "orchestrator/start/verifier_needs.hpp"

#include "actors/guard/sandbox.hpp"
#include "core/files.hpp"
#include "core/json_document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace temper::orchestrator {
namespace {

/// Names of the outputs of a sequence classifier.
std::vector<std::string> labels_of(const nlohmann::json& config) {
  std::vector<std::string> labels;
  const auto names = config.find("id2label");
  if (names != config.end() && names->is_object() && !names->empty()) {
    for (const auto& name : *names)
      labels.push_back(name.is_string() ? name.get<std::string>() : name.dump());
    return labels;
  }
  const auto count = config.find("num_labels");
  const std::size_t n = count != config.end() && count->is_number_unsigned()
                            ? std::min<std::size_t>(count->get<std::size_t>(), 1000)
                            : 2;  // As transformers assumes.
  for (std::size_t i = 0; i < n; ++i)
    labels.push_back(fmt::format("LABEL_{}", i));
  return labels;
}

bool is_sequence_classifier(const nlohmann::json& config) {
  const auto names = config.find("architectures");
  return names != config.end() && names->is_array() &&
         std::ranges::any_of(*names, [](const nlohmann::json& name) {
           return name.is_string() &&
                  name.get<std::string>().ends_with("ForSequenceClassification");
         });
}

void check_classifier(const std::string& section,
                      const actors::ClassifierConfig& model,
                      std::vector<BrokenRule>& broken) {
  const std::string path_key = section + ".model.path";
  const std::filesystem::path file = std::filesystem::path(model.path) / "config.json";
  const auto text = read_file(file);
  if (!text) {
    broken.push_back({{path_key},
                      fmt::format("{}; expected a model folder as save_pretrained writes it",
                                  text.error().context)});
    return;
  }
  const nlohmann::json config = parse_json(*text);
  if (!config.is_object() || !is_sequence_classifier(config)) {
    broken.push_back({{path_key},
                      fmt::format("{} names no architecture `...ForSequenceClassification`; the "
                                  "folder must be that of a sequence classifier",
                                  file.string())});
    return;
  }
  const std::vector<std::string> labels = labels_of(config);
  if (model.label.empty() && labels.size() == 1)
    return;
  if (std::ranges::find(labels, model.label) == labels.end()) {
    std::string known;
    for (std::size_t i = 0; i < std::min<std::size_t>(labels.size(), 10); ++i)
      known += fmt::format("{}\"{}\"", i > 0 ? ", " : "", labels[i]);
    broken.push_back(
        {{section + ".model.label"},
         model.label.empty()
             ? fmt::format(
                   "required, because the classifier has {} outputs: {}", labels.size(), known)
             : fmt::format(
                   "expected a label of the classifier ({}), found \"{}\"", known, model.label)});
  }
}

void check_key(const std::string& section,
               const std::string& variable,
               std::vector<BrokenRule>& broken) {
  if (variable.empty())
    return;
  const char* const key = std::getenv(variable.c_str());
  if (key != nullptr && *key != '\0')
    return;
  broken.push_back(
      {{section + ".judge.key_variable"},
       fmt::format("the environment variable {} is {}; export it where temper is started",
                   variable,
                   key == nullptr ? "not set" : "empty")});
}

}  // namespace

std::vector<BrokenRule> missing_for_verifier(const PipelineConfig& config) {
  std::vector<BrokenRule> broken;
  const bool judges_here = config.reward.launch == LaunchKind::Local &&
                           config.reward.engine.kind == actors::EngineKind::Native;
  for (const auto& [name, term] : actors::terms_of(config.verifier)) {
    const std::string section = section_of(config.verifier, name);
    if (term.kind == actors::VerifierKind::Command) {
      if (Status can = actors::check_sandbox(term.sandbox); !can)
        broken.push_back({{section + ".sandbox"}, can.error().context});
    }
    if (judges_here && term.kind == actors::VerifierKind::Judge)
      check_key(section, term.judge.key_variable, broken);
    if (judges_here && term.kind == actors::VerifierKind::Model)
      check_classifier(section, term.model, broken);
  }
  return broken;
}

}  // namespace temper::orchestrator
