#include "cli/run/check_command.hpp"

#include "actors/simulation/expert_imbalance.hpp"
#include "actors/simulation/lengths.hpp"
#include "actors/simulation/memory_phases.hpp"
#include "actors/simulation/role_clusters.hpp"
#include "actors/simulation/role_layouts.hpp"
#include "actors/simulation/role_memory.hpp"
#include "actors/simulation/simulated_reference.hpp"
#include "actors/simulation/tool_calls.hpp"
#include "actors/simulation/weight_moves.hpp"
#include "actors/task/prompts.hpp"
#include "cli/command/exit_code.hpp"
#include "cli/laboratory/laboratory.hpp"
#include "cli/view/card_map.hpp"
#include "core/json.hpp"
#include "core/yaml.hpp"
#include "orchestrator/pipeline/card_shares.hpp"
#include "orchestrator/pipeline/changed_yaml.hpp"
#include "orchestrator/pipeline/clusters.hpp"
#include "orchestrator/pipeline/load.hpp"
#include "orchestrator/pipeline/local_memory.hpp"
#include "orchestrator/pipeline/message_sizes.hpp"
#include "orchestrator/pipeline/model_section.hpp"
#include "orchestrator/pipeline/reference_rules.hpp"
#include "orchestrator/pipeline/resolve.hpp"
#include "orchestrator/pipeline/simulated_memory.hpp"
#include "orchestrator/pipeline/simulation.hpp"
#include "orchestrator/pipeline/switch_plan.hpp"
#include "orchestrator/start/start_run.hpp"
#include "trainer/algorithm_table.hpp"
#include "trainer/simulated/update_cost.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace temper {
namespace {

/// The output of `temper check --json`.
struct CheckReport {
  bool ok = false;
  std::vector<ConfigIssue> issues;
  std::optional<orchestrator::PipelineConfig> config;
  std::vector<orchestrator::ActorSpec> actors;
  std::vector<ConfigIssue> warnings{};
};

void describe(auto& v, CheckReport& r) {
  v.field(1, "ok", r.ok);
  v.field(2, "issues", r.issues);
  v.field(3, "config", r.config);
  v.field(4, "actors", r.actors);
  v.field(5, "warnings", r.warnings);
}

/// "0, 1, 5"; more than kMany cards are listed as ranges: "0-31, 64".
std::string listed(const std::vector<CardId>& cards) {
  constexpr std::size_t kMany = 8;
  if (cards.size() <= kMany)
    return fmt::format("{}", fmt::join(cards, ", "));
  return cli::card_ranges(cards);
}

/// The cards of each actor as YAML comments, so that the whole output is a valid configuration.
std::string card_map(const std::vector<orchestrator::ActorSpec>& slots,
                     const std::vector<orchestrator::CardKind>& kinds) {
  std::string out = "\n# cards\n";
  for (const orchestrator::ActorSpec& slot : slots) {
    const bool has_cards = !slot.cards.empty();
    out += fmt::format("#   {:<14} [{}]{}\n",
                       slot.name,
                       listed(slot.cards),
                       has_cards ? orchestrator::kind_text(kinds, slot.cards.front()) : "");
  }
  return out;
}

/// Predicted time for new weights to reach the engines, as a YAML comment.
std::string publication(const orchestrator::ResolvedPipeline& pipeline) {
  for (const orchestrator::ActorSpec& slot : pipeline.slots) {
    if (slot.role != actors::RoleKind::Rollout)
      continue;
    const actors::SimulationSettings settings = orchestrator::actor_settings(pipeline, slot);
    const sim_hw::Fabric fabric = sim_hw::make_fabric(settings.cluster);
    const bool apart =
        actors::are_apart(settings, actors::RoleKind::Rollout, actors::RoleKind::Trainer);
    const int digits = settings.adapter ? 4 : 2;
    return (settings.adapter
                ? fmt::format(
                      "\n# adapter: {:.1f} million parameters; a version takes {:.1f} MB on "
                      "each device of an engine",
                      static_cast<double>(actors::trained_parameters(settings)) / 1e6,
                      actors::version_bytes(settings) / 1e6)
                : "") +
           fmt::format(
               "\n# weights: publication by {}{} takes {:.{}f} s; engines load them in "
               "{:.{}f} s\n",
               name_of(settings.config.publication.mode),
               apart ? " over the link between the clusters" : "",
               actors::publish_seconds(fabric, settings),
               digits,
               actors::swap_seconds(fabric, settings),
               digits);
  }
  return "";
}

/// A reference with a model of its own, and how long it scores responses of mean length, as a YAML
/// comment.
std::string reference_map(const orchestrator::ResolvedPipeline& pipeline) {
  const actors::SimulatedPlacement placement = orchestrator::simulated_placement(pipeline);
  if (!placement.run.reference_model || placement.reference == actors::ReferencePlace::None)
    return "";
  const actors::SimulationSettings own = actors::one_reference(placement);
  const auto& algorithm = pipeline.config.algorithm;
  const std::int64_t batch =
      std::int64_t{algorithm.groups_per_update} * algorithm.responses_per_group;
  const orchestrator::ScoringPasses passes =
      orchestrator::scoring_passes(pipeline.config, pipeline.placement, batch);
  const sim_hw::RolloutLengths mean = actors::drawn_lengths(own.config.prompt, own.config.response);
  const std::vector<Tokens> lengths(static_cast<std::size_t>(passes.responses),
                                    Tokens(static_cast<std::int64_t>(mean.prompt + mean.response)));
  const double seconds = actors::ReferenceModel(own).seconds(lengths);
  return fmt::format(
      "\n# reference: {}\n#   a pass over {} responses of mean length takes {:.3f} s, those "
      "over a batch {:.1f} s\n",
      orchestrator::reference_text(own),
      passes.responses,
      seconds,
      passes.count * seconds);
}

/// The memory of each phase per device and host, and the times of weights and of a reference, as
/// YAML comments.
std::string memory_map(const orchestrator::ResolvedPipeline& pipeline) {
  const std::vector<actors::PhaseLedger> ledger = orchestrator::memory_ledger(pipeline);
  if (ledger.empty())
    return "";
  const bool alike = !pipeline.simulation->clusters;
  std::string out =
      alike ? fmt::format("\n# memory by phase: GB used of {:.1f} per device, of {:.1f} per host\n",
                          actors::device_capacity(*pipeline.simulation) / 1e9,
                          actors::host_capacity(*pipeline.simulation) / 1e9)
            : "\n# memory by phase: GB used per device, GB used per host, capacities\n";
  struct Most {
    double device = 0, host = 0;
  };
  std::map<std::int64_t, Most> most;  // By number of engines, if cards switch one by one.
  for (const actors::PhaseLedger& phase : ledger) {
    if (phase.engines != ledger.front().engines) {
      Most& of = most[phase.engines];
      of = {std::max(of.device, phase.device()), std::max(of.host, phase.host())};
      continue;
    }
    out += fmt::format("#   {:<28} {:8.1f} {:8.1f}",
                       fmt::format("{}: {}", phase.group, phase.phase),
                       phase.device() / 1e9,
                       phase.host() / 1e9);
    if (!alike) {
      out += fmt::format(
          "   of {:.1f} and {:.1f}", phase.device_capacity / 1e9, phase.host_capacity / 1e9);
    }
    out += '\n';
  }
  for (const auto& [engines, of] : most) {
    out += fmt::format("#   {:<28} {:8.1f} {:8.1f}\n",
                       fmt::format("cards of {} engines: most", engines),
                       of.device / 1e9,
                       of.host / 1e9);
  }
  return out + publication(pipeline) + reference_map(pipeline);
}

/// Predicted duration of a role switch on time-shared cards, as YAML comments.
std::string switch_map(const orchestrator::ResolvedPipeline& pipeline) {
  if (!traits_of(pipeline.placement.mode).shares)
    return "";
  const actors::SimulatedPlacement placement = orchestrator::simulated_placement(pipeline);
  const orchestrator::SwitchPlan plan = orchestrator::predict_switch(placement);
  const orchestrator::OtherOrders others = orchestrator::predict_other_orders(placement);
  std::string out = "\n# role switch: predicted seconds\n";
  const auto list = [&](std::string_view what, const auto& states) {
    double sum = 0;
    out += fmt::format("#   {}\n", what);
    for (const orchestrator::PredictedState& state : states) {
      out += fmt::format("#     {:<20} {:8.3f}\n", state.state, state.seconds);
      sum += state.seconds;
    }
    out += fmt::format("#     {:<20} {:8.3f}\n", "total", sum);
  };
  list("to rollout", plan.to_rollout);
  list("to training, without scoring and the current step", plan.to_training);
  const auto share = [](const std::optional<double>& s) {
    return s ? fmt::format("{:.2f}", *s) : std::string("none");
  };
  out += fmt::format(
      "#   largest kv_share that fits: {}; {} if the cache were allocated first\n"
      "#   {:.3f} s more if the trainer's weights were offloaded before resharding\n",
      share(others.kv_share_last),
      share(others.kv_share_first),
      others.weights_first);
  return out;
}

/// Whether a mechanism is configured whose effect on the training step is worth a line.
bool has_mechanisms(const actors::SimulationConfig& c) {
  const actors::ExpertConfig& trained = c.trainer.experts ? *c.trainer.experts : c.experts;
  return c.experts.loads != actors::ExpertLoadKind::Balanced ||
         trained.loads != actors::ExpertLoadKind::Balanced || trained.sequence_spread > 0 ||
         c.trainer.capacity_factor || c.rollout.redundant_experts > 0 ||
         c.trainer.activations != sim_hw::ActivationPolicy::Full ||
         c.trainer.mechanisms.schedule != sim_hw::PipelineSchedule::OneForwardOneBackward;
}

/// Mean imbalance of an engine's experts in the first versions, as a YAML comment.
std::string engine_imbalance(const orchestrator::ResolvedPipeline& pipeline,
                             std::uint64_t versions) {
  const auto slot =
      std::ranges::find(pipeline.slots, actors::RoleKind::Rollout, &orchestrator::ActorSpec::role);
  if (slot == pipeline.slots.end())
    return "";
  auto experts = actors::engine_experts(orchestrator::actor_settings(pipeline, *slot));
  if (!experts.any())
    return "";
  double sum = 0;
  for (std::uint64_t v = 0; v < versions; ++v)
    sum += experts.at(PolicyVersion(v), actors::kAnyGainPays).imbalance;
  return fmt::format("#   busiest experts of engines   {:8.3f} times the mean load\n",
                     sum / static_cast<double>(versions));
}

/// Mechanisms of the training steps of this run, with batches of mean length, as YAML comments.
std::string mechanism_map(const orchestrator::ResolvedPipeline& pipeline) {
  constexpr std::uint64_t kMostSteps = 20;
  actors::SimulatedRun run = *pipeline.simulation;
  if (!has_mechanisms(run.config))
    return "";
  actors::look_at(run, actors::RoleKind::Trainer);
  const auto& algorithm = pipeline.config.algorithm;
  const sim_hw::RolloutLengths mean = actors::drawn_lengths(run.config.prompt, run.config.response);
  const std::vector<Tokens> batch(static_cast<std::size_t>(algorithm.groups_per_update) *
                                      static_cast<std::size_t>(algorithm.responses_per_group),
                                  Tokens(static_cast<std::int64_t>(mean.prompt + mean.response)));
  const std::uint64_t steps = std::clamp<std::uint64_t>(pipeline.config.steps, 1, kMostSteps);
  trainer::UpdateModel update(run);
  sim_hw::MigrationOutcome experts = sim_hw::kNoOutcome;
  const auto count = static_cast<double>(steps);
  double hidden = 0, exchanged = 0, migration = 0, total = 0, swapped = 0;
  for (std::uint64_t step = 0; step < steps; ++step) {
    const trainer::UpdateCost cost = update(batch, PolicyVersion(step));
    experts.add(cost.experts, count);
    migration += cost.expert_migration;
    hidden += cost.time.hidden;
    exchanged += cost.time.hidden + cost.time.stage.expert_parallel;
    total += cost.total();
    swapped = cost.swapped_activations;
  }
  std::string out =
      fmt::format("\n# mechanisms: means of {} training steps of {:.1f} s\n", steps, total / count);
  if (exchanged > 0)
    out += fmt::format("#   expert communication hidden  {:8.1f} %\n", 100 * hidden / exchanged);
  if (swapped > 0)
    out += fmt::format("#   activations swapped          {:8.1f} GB per device\n", swapped / 1e9);
  if (run.config.trainer.capacity_factor) {
    out += fmt::format("#   copies dropped by experts    {:8.2f} %   {:.2f} % in the worst layer\n",
                       100 * experts.dropped,
                       100 * experts.dropped_most);
  }
  if (run.config.trainer.capacity_factor || experts.without_migration > 1 + 1e-9) {
    out += fmt::format(
        "#   busiest experts, in order    {:8.3f} times the mean load\n"
        "#   busiest experts, as placed   {:8.3f} times the mean load\n"
        "#   loads predicted elsewhere    {:8.1f} %\n"
        "#   migration                    {:8.3f} s per step\n",
        experts.without_migration,
        experts.imbalance,
        100 * experts.prediction_error,
        migration / count);
  }
  return out + engine_imbalance(pipeline, steps);
}

/// Tool calls of a response, as a YAML comment.
std::string tool_map(const actors::SimulationConfig& c) {
  if (!c.tools)
    return "";
  const actors::MeanToolCalls mean = actors::mean_tool_calls(*c.tools, c.response);
  return fmt::format(
      "\n# tools: a response makes {:.1f} calls, waits {:.1f} s in all, and gets {:.0f} % of its "
      "tokens (means)\n",
      mean.calls,
      mean.waiting,
      100 * mean.results);
}

/// How far the figures above rest on unmeasured constants, as YAML comments.
std::string constants_map(const orchestrator::ResolvedPipeline& pipeline) {
  std::string out;
  for (const char c : cli::simulated_run_note(actors::all_hardware(*pipeline.simulation)))
    out += out.empty() || out.back() == '\n' ? std::string("# ") + c : std::string(1, c);
  return out.empty() ? out : "\n" + out;
}

/// Local hardware: the sizes of the messages, as a YAML comment.
std::string message_map(const orchestrator::PipelineConfig& config) {
  if (config.hardware != orchestrator::HardwareKind::Local)
    return {};
  const auto prompts =
      actors::make_prompt_source(config.task, config.seed, {.model = config.model.path});
  const auto tokenizer = orchestrator::tokenizer_of(config, config.model.path);
  const auto found = prompts && tokenizer ? (*prompts)->longest_prompt(*tokenizer) : Tokens(1);
  const Tokens longest = found ? *found : Tokens(1);
  const orchestrator::MessageSizes sizes = orchestrator::message_sizes(config, longest);
  return fmt::format("\n# messages: {}\n", orchestrator::sizes_text(sizes));
}

/// Local hardware: peak memory of each card's processes, as YAML comments.
std::string local_memory_map(const orchestrator::PipelineConfig& config) {
  const auto ledger = orchestrator::has_local_ledger(config)
                          ? orchestrator::local_ledger(config)
                          : Result<orchestrator::LocalLedger>(orchestrator::LocalLedger());
  if (!ledger || ledger->cards.empty())
    return "";
  constexpr double kMiB = 1 << 20;
  std::string out = "\n# memory: peak MiB of the processes on each card\n";
  for (const orchestrator::CardLedger& card : ledger->cards) {
    out += fmt::format("#   {:<14} {:8.1f}  {}\n",
                       fmt::format("{}: {}", card.card, card.phase),
                       card.bytes() / kMiB,
                       card.text());
  }
  return out + fmt::format("#   {:<14} {:8.1f}\n#   {:<14} {:8.1f}\n",
                           "all cards",
                           ledger->most() / kMiB,
                           "host memory",
                           ledger->host / kMiB);
}

/// Checks that depend on this machine: files, programs, cards, the longest prompt.
void check_machine(const orchestrator::LoadedConfig& loaded, std::vector<ConfigIssue>& issues) {
  for (const orchestrator::BrokenRule& rule : orchestrator::rules_of_this_machine(loaded.config()))
    issues.push_back(loaded.blame(rule));
}

}  // namespace

void describe(auto& v, ConfigIssue& i) {
  v.field(1, "location", i.location);
  v.field(2, "key", i.key);
  v.field(3, "message", i.message);
}

namespace cli {

int run_check(const CheckOptions& options, std::ostream& out, std::ostream& err) {
  CheckReport report;
  std::string maps;  // of simulated hardware
  std::string changed;
  Result<orchestrator::LoadedConfig> loaded =
      orchestrator::read_config(options.config, options.sets);
  if (!loaded) {
    report.issues.push_back({"temper", "", loaded.error().context});
  } else {
    report.issues = loaded->issues();
    report.warnings = loaded->warnings();
    report.config = loaded->config();
    if (report.issues.empty())
      check_machine(*loaded, report.issues);
    if (report.issues.empty())
      maps = message_map(*report.config) + local_memory_map(*report.config);
  }
  report.ok = report.issues.empty();
  if (report.ok) {
    orchestrator::PipelineConfig& config = *report.config;
    auto pipeline = orchestrator::resolve(config);
    if (!pipeline)
      return fail(pipeline.error(), err);
    if (pipeline->simulation && options.format != CheckOptions::Format::Json)
      maps += memory_map(*pipeline) + tool_map(pipeline->simulation->config) +
              mechanism_map(*pipeline) + switch_map(*pipeline) + constants_map(*pipeline);
    report.actors = std::move(pipeline->slots);
    if (options.keys == CheckOptions::Keys::Changed)
      changed = orchestrator::changed_yaml(config);
    config.algorithm =
        trainer::written_out(config.algorithm, config.sampling.max_new_tokens, config.steps);
  } else {
    report.config.reset();
  }

  if (options.format == CheckOptions::Format::Json) {
    out << to_json(report, JsonStyle::Pretty) << '\n';
  } else if (report.ok) {
    for (const ConfigIssue& warning : report.warnings)
      err << "warning: " << render(std::span(&warning, 1));
    const bool all = options.keys == CheckOptions::Keys::All;
    out << (all ? to_yaml(*report.config) : changed)
        << card_map(report.actors, orchestrator::card_kinds(*report.config)) << maps;
  } else {
    err << render(report.issues);
  }
  return report.ok ? kDone : kBadInput;
}

Handler check_command(Flags& flags) {
  const auto options = std::make_shared<CheckOptions>();
  const auto json = std::make_shared<bool>(false);
  flags.pipeline(options->config, options->sets, Need::Optional);
  flags.json(*json);
  const auto all = std::make_shared<bool>(false);
  flags.flag("--all", *all, "Print every key, including those with default values");
  return [options, json, all] {
    options->format = *json ? CheckOptions::Format::Json : CheckOptions::Format::Text;
    options->keys = *all ? CheckOptions::Keys::All : CheckOptions::Keys::Changed;
    return run_check(*options, std::cout, std::cerr);
  };
}

}  // namespace cli
}  // namespace temper
