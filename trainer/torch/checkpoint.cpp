#include "trainer/torch/checkpoint.hpp"

#include "actors/model_folder/adapter_folder.hpp"
#include "actors/model_folder/stored_tensors.hpp"
#include "core/files.hpp"
#include "core/json_document.hpp"
#include "trainer/settings.hpp"

#include <fmt/format.h>

namespace temper::trainer {

namespace {

using actors::SafetensorsImage;

constexpr auto kOptimizerFile = "optimizer.safetensors";
constexpr auto kCountersFile = "trainer.json";
constexpr auto kCriticFile = "critic.safetensors";
constexpr auto kCriticOptimizerFile = "critic_optimizer.safetensors";
constexpr auto kCriticSteps = "critic_optimizer_steps";

struct Counters {
  std::uint64_t updates = 0;
  std::int64_t optimizer_steps = 0;
  std::optional<std::int64_t> critic_steps;
};

Result<Counters> parse_counters(std::string_view text) {
  const auto json = parse_json(text);
  const auto has = [&](const char* key) {
    return json.contains(key) && json[key].is_number_unsigned();
  };
  if (!json.is_object() || !has("format") || !has("updates") || !has("optimizer_steps"))
    return corrupt("expected the numbers format, updates and optimizer_steps");
  if (json["format"] != kCheckpointFormat)
    return corrupt(
        fmt::format("checkpoint format {}, expected {}", json["format"].dump(), kCheckpointFormat));
  Counters counters{json["updates"].get<std::uint64_t>(),
                    json["optimizer_steps"].get<std::int64_t>(),
                    std::nullopt};
  if (has(kCriticSteps))
    counters.critic_steps = json[kCriticSteps].get<std::int64_t>();
  return counters;
}

Status read_tensors(const std::filesystem::path& path,
                    std::uint64_t updates,
                    std::span<const actors::TensorToRead> expected) {
  TEMPER_TRY(const std::string file, read_file(path));
  const auto read = [&]() -> Status {
    TEMPER_TRY(const SafetensorsImage image,
               actors::parse_safetensors(std::as_bytes(std::span(file))));
    TEMPER_TRY_STATUS(copy_tensors(image, expected));
    const auto of = image.metadata.find("updates");
    if (of == image.metadata.end() || of->second != std::to_string(updates)) {
      return corrupt(fmt::format("belongs to step {}, but {} belongs to step {}",
                                 of == image.metadata.end() ? "?" : of->second,
                                 kCountersFile,
                                 updates));
    }
    return {};
  };
  auto status = read();
  return status ? std::move(status) : Status(std::move(status).error().within(path.string()));
}

std::string_view file_of(const TrainedPolicy& policy) {
  return policy.adapter() != nullptr ? actors::kAdapterFile : actors::kWeightsFile;
}

template <class Tensor>
std::vector<Tensor> joined(std::vector<Tensor> a, std::vector<Tensor> b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Result<CriticState> load_critic(const std::filesystem::path& folder,
                                const actors::Layout& layout,
                                const Counters& counters) {
  if (!counters.critic_steps) {
    return Error{
        ErrorCode::NotFound,
        fmt::format("{}: expected {}, found none: the checkpoint was made without a critic",
                    (folder / kCountersFile).string(),
                    kCriticSteps)};
  }
  CriticState state{actors::FloatBuffer(layout.size()), actors::AdamWState(layout)};
  TEMPER_TRY_STATUS(read_tensors(folder / kCriticFile,
                                 counters.updates,
                                 actors::tensors_to_read(layout, state.values.span())));
  actors::AdamWState& optimizer = state.optimizer;
  TEMPER_TRY_STATUS(
      read_tensors(folder / kCriticOptimizerFile,
                   counters.updates,
                   joined(actors::tensors_to_read(layout, optimizer.first_moment.span(), "m."),
                          actors::tensors_to_read(layout, optimizer.second_moment.span(), "v."))));
  optimizer.steps = *counters.critic_steps;
  return state;
}

}  // namespace

Status save_checkpoint(const std::filesystem::path& folder,
                       const TrainedPolicy& policy,
                       const actors::AdamWState& optimizer,
                       std::uint64_t updates,
                       const CriticView& critic) {
  const actors::SafetensorsMetadata metadata{{"updates", std::to_string(updates)}};
  const auto write = [&](std::string_view name, std::span<const actors::TensorToWrite> tensors) {
    return write_file_atomically(folder / name, [&](const ByteSink& sink) {
      return write_safetensors(tensors, metadata, actors::StoredType::Float32, sink);
    });
  };
  TEMPER_TRY_STATUS(write(file_of(policy), policy.tensors_to_write(policy.values().span())));
  if (policy.adapter() != nullptr) {
    TEMPER_TRY_STATUS(write_file_atomically(
        folder / actors::kAdapterConfigFile,
        adapter_config_json(policy.adapter()->layout().lora(), policy.layout().model().path)));
  }
  const auto moments = joined(policy.tensors_to_write(optimizer.first_moment.span(), "m."),
                              policy.tensors_to_write(optimizer.second_moment.span(), "v."));
  TEMPER_TRY_STATUS(write(kOptimizerFile, moments));
  nlohmann::ordered_json counters = {
      {"format", kCheckpointFormat}, {"updates", updates}, {"optimizer_steps", optimizer.steps}};
  if (critic.weights != nullptr) {
    const actors::Layout& layout = critic.weights->layout();
    TEMPER_TRY_STATUS(
        write(kCriticFile, actors::tensors_to_write(layout, critic.weights->values().span())));
    const auto of_critic =
        joined(actors::tensors_to_write(layout, critic.optimizer->first_moment.span(), "m."),
               actors::tensors_to_write(layout, critic.optimizer->second_moment.span(), "v."));
    TEMPER_TRY_STATUS(write(kCriticOptimizerFile, of_critic));
    counters[kCriticSteps] = critic.optimizer->steps;
  }
  return write_file_atomically(folder / kCountersFile, counters.dump(2) + "\n");
}

Result<TrainerState> load_checkpoint(const std::filesystem::path& folder,
                                     const TrainedPolicy& policy,
                                     const std::optional<actors::Layout>& critic) {
  TEMPER_TRY(const std::string text, read_file(folder / kCountersFile));
  auto counters = parse_counters(text);
  if (!counters)
    return std::move(counters).error().within((folder / kCountersFile).string());
  const std::int64_t floats = policy.values().size();
  TrainerState state{
      actors::FloatBuffer(floats), actors::AdamWState(floats), counters->updates, {}};
  TEMPER_TRY_STATUS(read_tensors(
      folder / file_of(policy), state.updates, policy.tensors_to_read(state.values.span())));
  actors::AdamWState& optimizer = state.optimizer;
  TEMPER_TRY_STATUS(
      read_tensors(folder / kOptimizerFile,
                   state.updates,
                   joined(policy.tensors_to_read(optimizer.first_moment.span(), "m."),
                          policy.tensors_to_read(optimizer.second_moment.span(), "v."))));
  optimizer.steps = counters->optimizer_steps;
  if (critic) {
    TEMPER_TRY(state.critic, load_critic(folder, *critic, *counters));
  }
  return state;
}

}  // namespace temper::trainer
