#include "orchestrator/pipeline/model_section.hpp"

#include "actors/model_folder/model_folder.hpp"
#include "core/json.hpp"
#include "core/scalar_text.hpp"
#include "orchestrator/model_source/model_source.hpp"

#include <fmt/format.h>

namespace temper::orchestrator {
namespace {

using actors::ModelConfig;

/// Compares each key that is given with the folder's value. Visits the folder's section; `given`
/// receives one field of the other section at a time, so that both are visited in step.
class Comparison {
 public:
  Comparison(const std::function<bool(const std::string&)>& is_given,
             std::vector<ModelIssue>& issues)
      : is_given_(is_given), issues_(issues) {}

  /// The first visit records the values of the file, the second compares.
  template <class T>
  void field(int id, std::string_view name, T& value, const std::type_identity_t<FieldMeta<T>>&) {
    if constexpr (OptionalLike<T>) {
      if (value)
        field(id, name, *value, {});
      else
        compare(id, name, kNull);
    } else if constexpr (Scalar<T>) {
      compare(id, name, scalar_text(value));
    } else if constexpr (Described<T>) {
      compare(id, name, to_json(value));
    }
  }

 private:
  static constexpr const char* kNull = "null";

  void compare(int id, std::string_view name, const std::string& text) {
    if (!noted_.contains(id)) {
      noted_[id] = text;
      return;
    }
    const std::string key = fmt::format("model.{}", name);
    if (is_given_(key) && noted_[id] != text && noted_[id] != kNull) {
      issues_.push_back(
          {key,
           fmt::format("expected {}, as in the config.json of model.path, found {}; remove "
                       "the key",
                       text,
                       noted_[id])});
    }
  }

  const std::function<bool(const std::string&)>& is_given_;
  std::vector<ModelIssue>& issues_;
  std::map<int, std::string> noted_;
};

}  // namespace

actors::ComputeType fastest_compute_type() {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx512bf16") != 0)
    return actors::ComputeType::Bfloat16;
#endif
  return actors::ComputeType::Float32;
}

CompletedModel complete_model(ModelConfig& model,
                              const std::function<bool(const std::string&)>& is_given) {
  if (model.compute_dtype == actors::ComputeType::Auto)
    model.compute_dtype = fastest_compute_type();
  CompletedModel completed;
  std::vector<ModelIssue>& issues = completed.issues;
  if (model.path.empty() || is_given("model.vocabulary"))
    return completed;
  const auto found = find_model_folder(model.path);
  if (!found)
    return {{{"model.path", found.error().context}}, {}};
  model.path = found->string();
  const auto folder = actors::ModelFolder::open(model.path, model.ignore);
  if (!folder)
    return {{{"model.path", folder.error().context}}, {}};
  for (const std::string& key : folder->ignored()) {
    completed.warnings.push_back(
        {"model.ignore",
         fmt::format(
             "Temper ignores `{}` of {}; check that it does not change what the model computes",
             key,
             (folder->path() / actors::kConfigFile).string())});
  }
  ModelConfig of_folder = folder->model();
  of_folder.path = model.path;
  of_folder.compute_dtype = model.compute_dtype;
  of_folder.lora = model.lora;
  of_folder.end_tokens = is_given("model.end_tokens") ? model.end_tokens : folder->end_tokens();
  if (is_given("model.context")) {
    if (model.context > of_folder.context) {
      issues.push_back({"model.context",
                        fmt::format("must be at most the folder's max_position_embeddings ({}), "
                                    "found {}",
                                    of_folder.context.count(),
                                    model.context.count())});
    }
    of_folder.context = model.context;
  }
  Comparison compare(is_given, issues);
  describe(compare, model);
  describe(compare, of_folder);
  model = std::move(of_folder);
  return completed;
}

void find_reference_model(PipelineConfig& config) {
  const auto find = [](std::string& path) {
    if (path.empty())
      return;
    if (const auto found = find_model_folder(path))
      path = std::filesystem::absolute(*found).string();
  };
  find(config.reference.model);
  for (auto& [name, teacher] : config.reference.teachers)
    find(teacher.model);
}

Status check_reference_model(const PipelineConfig& config, const Teacher& teacher) {
  if (teacher.model.empty())
    return {};
  TEMPER_TRY(const auto found, find_model_folder(teacher.model));
  if (teacher.engine.kind != actors::EngineKind::Native)
    return {};  // It may be of a family that only its engine knows.
  TEMPER_TRY(const auto folder, actors::ModelFolder::open(found, config.model.ignore));
  const std::int32_t vocabulary =
      config.model.vocabulary.value_or(actors::Tokenizer::for_task(config.task).vocabulary());
  const ModelConfig& model = folder.model();
  if (model.vocabulary != vocabulary) {
    return invalid_input(
        fmt::format("expected a model with the policy's vocabulary of {} tokens, found {}",
                    vocabulary,
                    model.vocabulary.value_or(0)));
  }
  if (model.context < config.model.context) {
    return invalid_input(
        fmt::format("expected a context of at least model.context ({} tokens), found {}",
                    config.model.context.count(),
                    model.context.count()));
  }
  TEMPER_TRY(const auto layout, actors::Layout::make(model, vocabulary));
  return folder.check(layout);
}

Result<actors::Tokenizer> tokenizer_of(const PipelineConfig& config,
                                       const std::filesystem::path& base) {
  if (config.model.path.empty())
    return actors::Tokenizer::for_task(config.task);
  return actors::Tokenizer::of_model(
      config.task,
      {base.empty() ? std::filesystem::path(config.model.path) : base,
       config.model.vocabulary.value_or(0),
       config.model.end_tokens});
}

}  // namespace temper::orchestrator
