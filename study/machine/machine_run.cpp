#include "study/machine/machine_run.hpp"

#include "actors/simulation/lengths.hpp"
#include "actors/task/prompts.hpp"
#include "actors/task/tokenizer.hpp"
#include "core/msgpack.hpp"
#include "core/yaml.hpp"
#include "orchestrator/pipeline/difference.hpp"
#include "orchestrator/pipeline/model_section.hpp"
#include "orchestrator/pipeline/resolve.hpp"
#include "orchestrator/pipeline/simulation.hpp"
#include "orchestrator/run/virtual/virtual_driver.hpp"
#include "study/machine/machine_host.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace temper::study {
namespace {

Status check_model(const orchestrator::PipelineConfig& config, const MachineModel& calibration) {
  const std::string wanted = to_yaml(config.model), measured = to_yaml(calibration.model);
  if (wanted == measured)
    return {};
  const auto [is, was] = orchestrator::first_difference(wanted, measured);
  return invalid_input(fmt::format(
      "model: the calibration of `{}` was measured with `{}`, found `{}`; measure this model "
      "with `temper measure`",
      calibration.config,
      was,
      is));
}

bool was_measured(const EngineTimes* engine, actors::RoleKind role) {
  switch (role) {
    case actors::RoleKind::Rollout:
      return engine != nullptr && !engine->decode.empty();
    case actors::RoleKind::Trainer:
      return engine != nullptr && update_seconds(*engine, {1, 1, 1}) > 0;
    case actors::RoleKind::Reference:
      return engine != nullptr && reference_seconds(*engine, 1) > 0;
    case actors::RoleKind::Reward:
      break;
  }
  return true;
}

Status check_threads(const std::vector<orchestrator::ActorSpec>& slots,
                     const MachineModel& calibration) {
  for (const orchestrator::ActorSpec& slot : slots) {
    for (const CardId card : slot.cards) {
      if (static_cast<std::int32_t>(card.value()) >= calibration.cores) {
        return invalid_input(fmt::format(
            "placement: {} is on core {}, but the calibrated machine has {} cores; nearest: "
            "placement.cards={}",
            slot.name,
            card,
            calibration.cores,
            calibration.cores));
      }
    }
    const std::size_t threads = std::max<std::size_t>(1, slot.cards.size());
    if (was_measured(calibration.with_threads(threads), slot.role))
      continue;
    return invalid_input(
        fmt::format("placement: {} uses {} threads, which the calibration has not measured; "
                    "measure again with `temper measure`",
                    slot.name,
                    threads));
  }
  return {};
}

/// Prompt lengths of a task, each computed once.
class PromptLengths {
 public:
  static Result<std::shared_ptr<PromptLengths>> make(const orchestrator::PipelineConfig& config) {
    TEMPER_TRY(auto tokenizer, orchestrator::tokenizer_of(config, config.model.path));
    auto lengths = std::make_shared<PromptLengths>(std::move(tokenizer));
    TEMPER_TRY(lengths->prompts_,
               actors::make_prompt_source(config.task, config.seed, {.model = config.model.path}));
    return lengths;
  }
  explicit PromptLengths(actors::Tokenizer tokenizer) : tokenizer_(std::move(tokenizer)) {}

  Tokens of(GroupId group) {
    while (known_.size() <= group.value()) {
      const auto tokens = tokenizer_.encode(prompts_->train(known_.size()).prompt);
      known_.push_back(Tokens(tokens ? std::ssize(*tokens) : 1));
    }
    return known_[group.value()];
  }

 private:
  actors::Tokenizer tokenizer_;
  std::unique_ptr<actors::PromptSource> prompts_;
  std::vector<Tokens> known_;
};

}  // namespace

Status check_of_this_machine(const orchestrator::PipelineConfig& config) {
  if (config.hardware != orchestrator::HardwareKind::Local) {
    return invalid_input(
        "hardware: found simulated; a calibration of this machine applies to local hardware only. "
        "Simulated runs need no forecast: `temper run CONFIG --driver in-process` makes one in "
        "virtual time, `temper sweep CONFIG --over KEY=VALUE,VALUE` several");
  }
  if (config.policy != actors::PolicyKind::Torch) {
    return invalid_input(
        "policy: only the engines of `torch` are measured; `synthetic` ones take "
        "`synthetic.step_time`");
  }
  return {};
}

Status check_forecastable(const orchestrator::PipelineConfig& config,
                          const MachineModel& calibration) {
  TEMPER_TRY_STATUS(check_of_this_machine(config));
  TEMPER_TRY_STATUS(check_model(config, calibration));
  if (config.sampling.max_new_tokens != calibration.response.cap) {
    return invalid_input(fmt::format(
        "sampling.max_new_tokens: found {1}, but the calibration was measured with {0}; measure "
        "again with `temper measure`",
        calibration.response.cap.count(),
        config.sampling.max_new_tokens.count()));
  }
  if (!config.rollout.agent.command.empty() && !config.simulation.tools) {
    return invalid_input(
        "rollout.agent: a forecast needs its turns and the time of its tools; describe them in "
        "simulation.tools (turn, result, latency), and the tokens of whole episodes in "
        "simulation.response");
  }
  return check_threads(orchestrator::resolve_cards(config).slots, calibration);
}

Result<Figures> forecast_run(const orchestrator::PipelineConfig& config,
                             const MachineModel& calibration,
                             const RecordedLengths& lengths) {
  TEMPER_TRY_STATUS(check_forecastable(config, calibration));
  TEMPER_TRY_STATUS(check_rules(config));
  const bool agent = !config.rollout.agent.command.empty();
  auto world = std::make_unique<MachineWorld>();
  world->config = config;
  world->calibration = calibration;
  world->prompt_length = lengths.prompt;
  world->response_length = lengths.response;
  if (!world->prompt_length) {
    TEMPER_TRY(const auto prompts, PromptLengths::make(config));
    world->prompt_length = [prompts](GroupId group) { return prompts->of(group); };
  }
  actors::LengthConfig rows = calibration.response;
  if (agent) {
    TEMPER_TRY(const actors::SimulationConfig described,
               orchestrator::with_traces(config.simulation));
    world->tools.emplace(*described.tools, config.seed);
    rows = described.response;
    if (!lengths.response && rows.cap > config.sampling.max_new_tokens) {
      return invalid_input(fmt::format(
          "simulation.response.cap: found {}, but sampling.max_new_tokens ends an episode at {}",
          rows.cap.count(),
          config.sampling.max_new_tokens.count()));
    }
  }
  if (!world->response_length) {
    const auto responses =
        std::make_shared<actors::Lengths>(rows, config.seed, actors::kResponseLengths);
    world->response_length = [responses](ResponseId r, GroupId g) {
      return responses->of(r.value(), g.value());
    };
  }
  orchestrator::VirtualOptions options;
  options.pipeline = orchestrator::resolve_cards(config);
  auto host = std::make_unique<MachineHost>(std::move(world), options.pipeline.slots);
  return simulate_on(std::move(options), std::move(host));
}

Result<Figures> forecast_run(const orchestrator::PipelineConfig& config,
                             const MachineModel& calibration) {
  return forecast_run(config, calibration, RecordedLengths{});
}

std::vector<Result<Figures>> forecast_all(std::span<const orchestrator::PipelineConfig> configs,
                                          const MachineModel& calibration,
                                          const SimulateOptions& options,
                                          const RecordedLengths& lengths) {
  return simulate_all(configs, options, [&](const orchestrator::PipelineConfig& config) {
    return forecast_run(config, calibration, lengths);
  });
}

}  // namespace temper::study
