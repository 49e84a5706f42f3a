#include "orchestrator/pipeline/simulation.hpp"

#include "actors/simulation/lengths.hpp"
#include "actors/simulation/role_clusters.hpp"
#include "actors/simulation/role_layouts.hpp"
#include "core/counts_file.hpp"
#include "core/scalar_text.hpp"
#include "orchestrator/pipeline/clusters.hpp"
#include "orchestrator/pipeline/deadline_rules.hpp"
#include "orchestrator/pipeline/reference_rules.hpp"
#include "orchestrator/pipeline/simulated_memory.hpp"
#include "orchestrator/pipeline/teachers.hpp"
#include "orchestrator/pipeline/unused_keys.hpp"
#include "orchestrator/scheduler/staleness/outstanding_groups.hpp"
#include "sim_hw/catalog/catalog.hpp"
#include "sim_hw/model/adapter.hpp"
#include "sim_hw/parallel/recorded_traces.hpp"
#include "trainer/algorithm_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace temper::orchestrator {
namespace {

using actors::LengthConfig;
using actors::LengthKind;

constexpr Duration kVirtualDeadline = std::chrono::hours(24);

/// Error: the file cannot be read, or is not an array of positive lengths.
Result<std::vector<std::int32_t>> read_trace(const std::string& path) {
  TEMPER_TRY(const std::vector<std::int64_t> counts, read_counts(path, "lengths"));
  if (*std::ranges::max_element(counts) > INT32_MAX)
    return invalid_input(fmt::format("{}: expected lengths of at most {}", path, INT32_MAX));
  return std::vector<std::int32_t>(counts.begin(), counts.end());
}

void check_lengths(const std::string& key,
                   LengthConfig c,
                   Rules& rules,
                   const LengthConfig& unset = {}) {
  check_unused_keys(key, c, unset, rules);
  if (c.kind == LengthKind::Trace) {
    if (c.trace.empty())
      return rules.require(false, {key + ".trace", key + ".kind"}, "required by `kind: trace`");
    auto lengths = read_trace(c.trace);
    if (!lengths)
      return rules.require(false, {key + ".trace"}, lengths.error().context);
    c.lengths = *std::move(lengths);
  }
  const Status status = actors::check_lengths(c);
  if (status)
    return;
  const char* blamed = c.kind == LengthKind::Histogram ? ".weights"
                       : c.kind == LengthKind::Trace   ? ".trace"
                                                       : ".mean";
  rules.require(false, {key + blamed, key}, status.error().context);
}

void check_tools(const actors::ToolConfig& c, Rules& rules) {
  const actors::ToolConfig unset;
  check_lengths("simulation.tools.turn", c.turn, rules, unset.turn);
  check_lengths("simulation.tools.result", c.result, rules, unset.result);
  const std::string key = "simulation.tools.latency";
  check_unused_keys(key, c.latency, rules);
  if (!c.latency.trace.empty()) {
    if (const auto milliseconds = read_trace(c.latency.trace); !milliseconds)
      rules.require(false, {key + ".trace"}, milliseconds.error().context);
    return;
  }
  constexpr auto kMillisecond = std::chrono::milliseconds(1);
  rules.require(c.latency.mean <= c.latency.cap / kMillisecond * kMillisecond,
                {key + ".mean", key + ".cap"},
                fmt::format("a mean of {} exceeds the cap of {} (whole milliseconds); lower `mean` "
                            "or raise `cap`",
                            scalar_text(c.latency.mean),
                            scalar_text(c.latency.cap)));
}

/// The loads of `experts.trace`, row by row.
Result<std::vector<double>> read_expert_trace(const actors::ExpertConfig& c,
                                              const sim_hw::ModelSpec& model) {
  TEMPER_TRY(const auto rows, sim_hw::read_expert_loads(c.trace, model.moe->experts));
  std::vector<double> out;
  for (const sim_hw::ExpertLoads& row : rows)
    out.insert(out.end(), row.begin(), row.end());
  return out;
}

void check_experts(const std::string& key,
                   const actors::ExpertConfig& c,
                   const sim_hw::ModelSpec& model,
                   Rules& rules) {
  const bool balanced = c.loads == actors::ExpertLoadKind::Balanced;
  if (balanced && c.sequence_spread == 0)
    return;
  if (!model.moe) {
    return rules.require(
        false,
        {key + (balanced ? ".sequence_spread" : ".loads"), "simulation.model"},
        fmt::format(
            "{} has no routed experts; nearest: {}", model.name, balanced ? "0" : "balanced"));
  }
  if (c.loads != actors::ExpertLoadKind::Trace)
    return;
  if (c.trace.empty())
    return rules.require(false, {key + ".trace", key + ".loads"}, "required by `loads: trace`");
  if (const auto read = read_expert_trace(c, model); !read)
    rules.require(false, {key + ".trace"}, read.error().context);
}

void check_experts(const actors::SimulationConfig& c,
                   const sim_hw::ModelSpec& model,
                   Rules& rules) {
  check_experts("simulation.experts", c.experts, model, rules);
  if (c.trainer.experts)
    check_experts("simulation.trainer.experts", *c.trainer.experts, model, rules);
  rules.require(model.moe || !c.trainer.capacity_factor,
                {"simulation.trainer.capacity_factor", "simulation.model"},
                fmt::format("{} has no routed experts; remove the key", model.name));
}

Result<sim_hw::Adapter> adapter_of(const actors::LoraConfig& c, const sim_hw::ModelSpec& model) {
  return sim_hw::make_adapter(model, c.rank, c.targets);
}

void check_adapter(const std::optional<actors::LoraConfig>& c,
                   const sim_hw::ModelSpec& model,
                   Rules& rules) {
  if (!c)
    return;
  const auto adapter = adapter_of(*c, model);
  if (adapter)
    return;
  const std::string& why = adapter.error().context;  // "rank: ...", "targets: ..."
  const std::size_t colon = why.find(": ");
  rules.require(false,
                {"model.lora." + why.substr(0, colon), "model.lora", "simulation.model"},
                why.substr(colon + 2));
}

void check_rollout_share(std::size_t cards, std::int32_t replicas, Rules& rules) {
  rules.require(replicas == 0 || cards % static_cast<std::size_t>(replicas) == 0,
                {"rollout.replicas", "placement.rollout", "placement.cards"},
                fmt::format("must divide the {} cards of the rollout, so that all replicas are "
                            "equal; found {}",
                            cards,
                            replicas));
}

void check_lent(const PlacementConfig& p, const PipelineConfig& c, Rules& rules) {
  const auto replicas = static_cast<std::size_t>(c.rollout.replicas);
  if (!traits_of(p.mode).lends() || p.rollout.size() % replicas != 0)
    return;
  const std::size_t engine = p.rollout.size() / replicas;
  const std::size_t whole = p.trainer.size() / engine * engine;
  rules.require(
      p.trainer.size() == whole && whole > 0,
      {"placement.rollout_cards", "placement.mode", "rollout.replicas"},
      fmt::format("in `{}` mode the {} cards of the trainer are lent as engines of {} "
                  "cards, of which they must be a multiple; nearest: a trainer of {} cards",
                  name_of(p.mode),
                  p.trainer.size(),
                  engine,
                  std::max(whole, engine)));
}

void check_prefill(const PipelineConfig& c, Rules& rules) {
  const std::int64_t cards = c.simulation.rollout.prefill_cards;
  if (cards == 0)
    return;
  const std::string key = "simulation.rollout.prefill_cards";
  rules.require(!c.simulation.rollout.chunked_prefill,
                {"simulation.rollout.chunked_prefill", key},
                fmt::format("must be false with prefill_cards = {}: the other cards of an engine "
                            "only decode, so no step prefills beside it",
                            cards));
  rules.require(c.rollout.on_new_weights != rollout::OnNewWeights::Recompute,
                {"rollout.on_new_weights", key},
                fmt::format("must be `keep_kv` or `finish` with prefill_cards = {}: the caches of "
                            "all running responses would have to be computed again by these cards, "
                            "which is not modeled",
                            cards));
}

/// Checks that the parallel layout divides the model and the cards of each role, and that memory
/// suffices.
void check_cards_hold(const PipelineConfig& c, Rules& rules) {
  const auto pipeline = resolve(c);
  if (!pipeline)
    return rules.require(false, {"simulation"}, pipeline.error().context);
  for (const ActorSpec& slot : pipeline->slots) {
    const actors::SimulationSettings own = actor_settings(*pipeline, slot);
    const bool first = slot.name.ends_with("-0");
    Status status;
    if (slot.role == actors::RoleKind::Trainer)
      status = actors::check_trainer(own);
    if (slot.role == actors::RoleKind::Rollout && first)
      status = actors::check_rollout(own);
    if (slot.role == actors::RoleKind::Reference && first)
      check_reference_layout(own, rules);
    if (!status) {
      rules.require(
          false,
          {slot.role == actors::RoleKind::Rollout ? "simulation.rollout" : "simulation.trainer",
           "placement"},
          status.error().context);
    }
  }
  if (!rules.hold())
    return;
  actors::SimulatedPlacement whole = simulated_placement(*pipeline);
  whole.keeps_gradients = false;  // Those are the last rule.
  const Status fits = check_memory(whole);
  if (!fits)
    return rules.require(false, {"simulation", "placement", "rollout"}, fits.error().context);
  rules.require(
      c.placement.switching != Switching::OneByOne || !pipeline->shares.empty(),
      {"stragglers.prepare", "placement.switching"},
      "the gradients kept for an incomplete batch do not fit in host memory "
      "beside the offloaded state, for any number of engines that give up their cards; nearest: "
      "`stragglers.prepare: false`");
  check_deadlines(*pipeline, rules);
}

/// What a step and all outstanding responses have in tensors, at mean lengths. Those that run are
/// mostly long ones, so the mean of a running response's tokens may be more.
void add_tensors(const PipelineConfig& c, actors::SimulatedRun& run) {
  if (!actors::check_lengths(run.config.prompt) || !actors::check_lengths(run.config.response))
    return;  // Reported as a broken rule of its own.
  const sim_hw::RolloutLengths mean = actors::drawn_lengths(run.config.prompt, run.config.response);
  const actors::TensorConfig& tensors = run.config.tensors;
  const auto of = [&](double tokens, double groups) {
    const double each = static_cast<double>(tensors.per_token.count()) * tokens +
                        static_cast<double>(tensors.per_response.count());
    return each * groups * c.algorithm.responses_per_group;
  };
  OutstandingGroups most;
  most.batch = c.algorithm.groups_per_update;
  most.bound = c.staleness.rule == StalenessRuleKind::Sync ? 0 : c.staleness.bound;
  const double whole = mean.prompt + mean.response;
  run.step_tensors = of(whole, most.batch);
  run.outstanding_tensors = of(std::max(whole, mean.context), static_cast<double>(most.capacity()));
}

/// Which tensors are lost with a host, and generated again, is not simulated.
void check_tensors(const PipelineConfig& c, Rules& rules) {
  rules.require(!c.simulation.tensors.any() || !fails_by_plan(c),
                {"simulation.tensors", "simulation.faults"},
                "expected none in a run whose hardware fails: the loss of tensors with their hosts "
                "is not simulated; remove `simulation.tensors` or `simulation.faults`");
}

}  // namespace

actors::TensorPlaces tensor_places(const PlacementConfig& cards) {
  actors::TensorPlaces places{cards.rollout, cards.trainer};
  if (traits_of(cards.mode).lends())
    places.engines.insert(places.engines.end(), cards.trainer.begin(), cards.trainer.end());
  return places;
}

Result<actors::SimulationConfig> with_traces(actors::SimulationConfig config) {
  std::vector<LengthConfig*> all{&config.prompt, &config.response};
  if (auto& tools = config.tools) {
    all.insert(all.end(), {&tools->turn, &tools->result});
    if (!tools->latency.trace.empty()) {
      TEMPER_TRY(tools->latency.milliseconds, read_trace(tools->latency.trace));
    }
  }
  for (LengthConfig* lengths : all) {
    if (lengths->kind == LengthKind::Trace) {
      TEMPER_TRY(lengths->lengths, read_trace(lengths->trace));
    }
  }
  return config;
}

Result<actors::SimulatedRun> resolve_simulation(const PipelineConfig& config,
                                                const PlacementConfig& placement) {
  sim_hw::Catalog catalog = sim_hw::Catalog::shipped();
  actors::SimulatedRun run;
  TEMPER_TRY(run.config, with_traces(config.simulation));
  TEMPER_TRY_STATUS(resolve_clusters(config, placement, catalog, run));
  TEMPER_TRY(const sim_hw::ModelSpec* model, catalog.model(config.simulation.model));
  run.model = *model;
  TEMPER_TRY(run.reference_model, reference_model(config.simulation, run.model, catalog));
  if (config.simulation.framework != sim_hw::kIdealFramework) {
    TEMPER_TRY(const sim_hw::FrameworkSpec* framework,
               catalog.framework(config.simulation.framework));
    run.framework = *framework;
  }
  if (config.model.lora) {
    TEMPER_TRY(run.adapter, adapter_of(*config.model.lora, run.model));
  }
  const auto is_trace = [&](const actors::ExpertConfig& c) {
    return run.model.moe && c.loads == actors::ExpertLoadKind::Trace;
  };
  if (is_trace(run.config.experts)) {
    TEMPER_TRY(run.expert_trace, read_expert_trace(run.config.experts, run.model));
  }
  if (const auto& own = run.config.trainer.experts; own && is_trace(*own)) {
    TEMPER_TRY(run.trainer_expert_trace, read_expert_trace(*own, run.model));
  }
  run.trainer_cards = std::ssize(placement.trainer);
  run.deadline_first = config.stragglers.deadline_first;
  if (run.config.tensors.any())
    add_tensors(config, run);
  if (config.rollout.on_new_weights == rollout::OnNewWeights::Finish)
    run.older_versions = static_cast<std::int64_t>(config.staleness.bound);
  run.critic = has_critic(trainer::resolve(config.algorithm, config.sampling.max_new_tokens));
  return run;
}

actors::SimulationSettings actor_settings(const ResolvedPipeline& pipeline, const ActorSpec& slot) {
  actors::SimulationSettings own{*pipeline.simulation};
  actors::look_at(own, slot.role);
  own.cards = std::ssize(slot.cards);
  own.concurrency = slot.concurrency;
  own.colocated = slot.takes_turns;
  own.rollout_cards = std::ssize(pipeline.placement.rollout);
  if (slot.takes_turns) {
    own.rollout_cards = own.trainer_cards;  // Engines on time-shared cards get weights from these.
    own.host_left = pipeline.host_left;     // Other roles use its host memory too.
  }
  if (slot.role == actors::RoleKind::Trainer && own.config.tensors.any())
    own.tensor_places = tensor_places(pipeline.placement);
  return own;
}

std::vector<BrokenRule> check_simulation(const PipelineConfig& c, const PlacementConfig& p) {
  Rules rules;
  sim_hw::Catalog catalog = sim_hw::Catalog::shipped();
  const actors::SimulationConfig& s = c.simulation;
  check_clusters(c, p, catalog, rules);
  if (s.model.empty()) {
    rules.require(false,
                  {"simulation.model", "hardware"},
                  "required by `hardware: simulated`: a name from configs/models, e.g. "
                  "pangu-ultra-moe-718b, or the path of a description");
  } else if (const auto model = catalog.model(s.model); !model) {
    rules.require(false, {"simulation.model"}, model.error().context);
  } else {
    check_experts(s, **model, rules);
    check_adapter(c.model.lora, **model, rules);
  }
  if (s.framework != sim_hw::kIdealFramework) {
    if (const auto framework = catalog.framework(s.framework); !framework)
      rules.require(false, {"simulation.framework"}, framework.error().context);
  }
  check_unused_keys(s, rules);
  check_lengths("simulation.prompt", s.prompt, rules);
  check_lengths("simulation.response", s.response, rules);
  if (s.tools)
    check_tools(*s.tools, rules);
  check_rollout_share(p.rollout.size(), c.rollout.replicas, rules);
  check_lent(p, c, rules);
  check_simulated_reference(c, p, catalog, rules);
  check_prefill(c, rules);
  check_tensors(c, rules);
  if (rules.hold())
    check_cards_hold(c, rules);
  return rules.take();
}

std::vector<BrokenRule> check_described_agent(const PipelineConfig& c) {
  Rules rules;
  const actors::SimulationConfig& s = c.simulation;
  if (c.rollout.agent.command.empty() || !s.tools)
    return {};
  check_tools(*s.tools, rules);
  check_lengths("simulation.response", s.response, rules);
  rules.require(s.tools->pool == 0,
                {"simulation.tools.pool", "rollout.agent.command"},
                "a forecast of an agent knows no limit of calls at once; remove `pool`");
  return rules.take();
}

bool fails_by_plan(const PipelineConfig& config) {
  const actors::FaultConfig& faults = config.simulation.faults;
  return config.hardware == HardwareKind::Simulated ? faults.any() : !faults.trace.empty();
}

void set_local_defaults(PipelineConfig& config,
                        const std::function<bool(const std::string& key)>& given) {
  actors::FaultConfig& f = config.simulation.faults;
  if (f.trace.empty())
    return;
  const std::tuple<const char*, Duration*, Duration> times[] = {
      {"repair", &f.repair, Duration(0)},
      {"replacement", &f.replacement, Duration(0)},
      {"link_repair", &f.link_repair, std::chrono::seconds(1)}};
  for (const auto& [name, time, local] : times) {
    if (!given(fmt::format("simulation.faults.{}", name)))
      *time = local;
  }
}

void set_simulated_defaults(PipelineConfig& config,
                            const std::function<bool(const std::string& key)>& given) {
  Deadlines& d = config.deadlines;
  const std::pair<const char*, Duration*> deadlines[] = {{"start", &d.start},
                                                         {"generate", &d.generate},
                                                         {"reference", &d.reference},
                                                         {"reward", &d.reward},
                                                         {"train", &d.train},
                                                         {"weights", &d.weights},
                                                         {"switching", &d.switching},
                                                         {"checkpoint", &d.checkpoint},
                                                         {"drain", &d.drain}};
  for (const auto& [name, deadline] : deadlines) {
    if (!given(fmt::format("deadlines.{}", name)))
      *deadline = kVirtualDeadline;
  }
  if (!given("checkpoint.every"))
    config.checkpoint.every = 0;
}

}  // namespace temper::orchestrator
