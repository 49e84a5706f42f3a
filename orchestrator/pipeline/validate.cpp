#include "orchestrator/pipeline/validate.hpp"

#include "actors/task/tokenizer.hpp"
#include "core/loopback.hpp"
#include "orchestrator/pipeline/critic_rules.hpp"
#include "orchestrator/pipeline/engine_rules.hpp"
#include "orchestrator/pipeline/launch_rules.hpp"
#include "orchestrator/pipeline/local_memory.hpp"
#include "orchestrator/pipeline/lora_rules.hpp"
#include "orchestrator/pipeline/placement.hpp"
#include "orchestrator/pipeline/placement_rules.hpp"
#include "orchestrator/pipeline/schedule_rules.hpp"
#include "orchestrator/pipeline/simulation.hpp"
#include "orchestrator/pipeline/source_rules.hpp"
#include "orchestrator/pipeline/teachers.hpp"
#include "orchestrator/pipeline/top_k_rules.hpp"
#include "orchestrator/pipeline/verifier_rules.hpp"
#include "trainer/algorithm_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace temper::orchestrator {
namespace {

void check_run(const PipelineConfig& c, Rules& rules) {
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
  constexpr std::size_t kLongest = 64;
  rules.require(!c.name.empty() && c.name.size() <= kLongest && c.name.front() != '.' &&
                    c.name.find_first_not_of(kAllowed) == std::string::npos,
                {"name"},
                "must be 1 to 64 letters, digits, '-', '_' or '.', since it names a folder");
}

void check_staleness(const PipelineConfig& c, Rules& rules) {
  using P = StalenessRuleKind;
  const StalenessConfig& s = c.staleness;
  rules.require(traits_of(s.rule).fractions || s.bound == std::floor(s.bound),
                {"staleness.bound", "staleness.rule"},
                fmt::format("must be an integer for `{}`, found {}", name_of(s.rule), s.bound));
  rules.require(s.rule != P::Drop || s.bound >= 1,
                {"staleness.bound", "staleness.rule"},
                fmt::format("must be at least 1 for `drop`, which drops groups as old as the "
                            "bound, found {}",
                            s.bound));
  rules.require(s.rule != P::Sync || s.bound == 0,
                {"staleness.bound", "staleness.rule"},
                fmt::format("must be 0 for `sync`, found {}", s.bound));
}

void check_model(const PipelineConfig& c, std::optional<Tokens> longest_prompt, Rules& rules) {
  const actors::ModelConfig& m = c.model;
  const bool divides = m.head_dim || m.hidden % m.heads == 0;
  rules.require(divides,
                {"model.heads", "model.hidden"},
                fmt::format("must divide model.hidden ({}), found {}", m.hidden, m.heads));
  rules.require(m.heads % m.kv_heads == 0,
                {"model.kv_heads", "model.heads"},
                fmt::format("must divide model.heads ({}), found {}", m.heads, m.kv_heads));
  rules.require(!divides || (m.head_size() > 0 && m.head_size() % 2 == 0),
                {m.head_dim ? "model.head_dim" : "model.heads", "model.hidden"},
                fmt::format("model.head_dim, or else model.hidden / model.heads, must be even for "
                            "the rotary positions, found {} for {} / {}",
                            m.head_size(),
                            m.hidden,
                            m.heads));
  rules.require(
      !m.rope_scaling || m.rope_scaling->high_freq_factor > m.rope_scaling->low_freq_factor,
      {"model.rope_scaling.high_freq_factor", "model.rope_scaling.low_freq_factor"},
      fmt::format("must be above low_freq_factor ({}), found {}",
                  m.rope_scaling.value_or(actors::RopeScaling{}).low_freq_factor,
                  m.rope_scaling.value_or(actors::RopeScaling{}).high_freq_factor));
  const std::int32_t tokens = actors::Tokenizer::for_task(c.task).vocabulary();
  rules.require(
      !m.path.empty() || m.vocabulary.value_or(tokens) >= tokens,
      {"model.vocabulary", "task.tokenizer"},
      fmt::format("must be at least {}, the number of tokens of the task's tokenizer, found {}",
                  tokens,
                  m.vocabulary.value_or(tokens)));
  const auto outside = [&](std::int32_t t) { return t < 0 || t >= m.vocabulary.value_or(tokens); };
  rules.require(std::ranges::none_of(m.end_tokens, outside),
                {"model.end_tokens", "model.vocabulary"},
                fmt::format("must be below the vocabulary of {}", m.vocabulary.value_or(tokens)));
  const Tokens response = c.sampling.max_new_tokens;
  const Tokens prompt = longest_prompt.value_or(Tokens(1));
  rules.require(m.context - prompt >= response,  // cannot overflow
                {"model.context", "sampling.max_new_tokens", "task.path", "task.digits"},
                fmt::format("must fit the longest prompt ({}) and sampling.max_new_tokens ({}), "
                            "found {}",
                            longest_prompt ? fmt::format("{} tokens", prompt.count())
                                           : std::string("at least 1 token"),
                            response.count(),
                            m.context.count()));
  rules.require(c.algorithm.micro_batch_tokens >= m.context,
                {"algorithm.micro_batch_tokens", "model.context"},
                fmt::format("must fit one sequence of model.context ({}) tokens, found {}",
                            m.context.count(),
                            c.algorithm.micro_batch_tokens.count()));
}

void check_task(const PipelineConfig& c, Rules& rules) {
  check_sources(c, rules);
  const bool chat = c.task.prompt_template == actors::TemplateKind::Chat;
  rules.require(!chat || c.task.kind == actors::TaskKind::Jsonl,
                {"task.template", "task.kind"},
                "`chat` requires `task.kind: jsonl`");
  rules.require(!chat || !c.model.path.empty(),
                {"task.template", "model.path"},
                "`chat` requires `model.path`, a folder with a chat template");
  check_verifier(c, rules);
}

/// Checks the section of the agent.
void check_agent(const PipelineConfig& c, Rules& rules) {
  const std::vector<std::string>& command = c.rollout.agent.command;
  if (command.empty())
    return;
  using Kind = actors::EngineKind;
  const Kind kind = c.rollout.engine.kind;
  rules.require(!command.front().empty(), {"rollout.agent.command"}, "must name a program");
  rules.require(c.hardware == HardwareKind::Local,
                {"rollout.agent.command", "hardware"},
                "an agent requires `hardware: local`; simulated engines sample no tokens, and "
                "`simulation.tools` describes the calls of their responses");
  rules.require(
      actors::is_server(kind) || (kind == Kind::Native && c.policy == actors::PolicyKind::Torch),
      {"rollout.agent.command", "rollout.engine.kind", "policy"},
      fmt::format("an agent requires an engine that samples tokens: `native` with "
                  "`policy: torch`, or a server; found `{}`, `{}`",
                  name_of(kind),
                  name_of(c.policy)));
  if (c.hardware == HardwareKind::Local)
    rules.add(check_described_agent(c));
}

/// Checks that engines can hold each version until its responses have ended.
void check_finish(const PipelineConfig& c, Rules& rules) {
  if (c.rollout.on_new_weights != rollout::OnNewWeights::Finish)
    return;
  const std::string key = "rollout.on_new_weights";
  const actors::EngineKind kind = c.rollout.engine.kind;
  rules.require(
      c.hardware == HardwareKind::Simulated ||
          (kind == actors::EngineKind::Native && c.policy == actors::PolicyKind::Torch),
      {key, "rollout.engine.kind", "policy"},
      fmt::format("`finish` requires an engine that holds several versions: `native` with "
                  "`policy: torch`, or simulated hardware; found `{}`, `{}`",
                  name_of(kind),
                  name_of(c.policy)));
  const actors::PlacementTraits& mode = traits_of(c.placement.mode);
  rules.require(!mode.shares,
                {key, "placement.mode"},
                fmt::format("`finish` requires `placement.mode: separate`, found `{}`: a role "
                            "switch interrupts responses, which then end under newer weights",
                            mode.name));
  rules.require(c.rollout.agent.command.empty(),
                {key, "rollout.agent.command"},
                "`finish` does not support an agent, whose turns are responses of their own; use "
                "`recompute`");
  const StalenessTraits& rule = traits_of(c.staleness.rule);
  rules.require(rule.limits_running,
                {key, "staleness.rule"},
                fmt::format("`finish` requires a rule that limits the age of running responses, "
                            "and so the versions that an engine holds; found `{}`, use `exact`",
                            rule.name));
}

void check_engines(const PipelineConfig& c, Rules& rules) {
  check_agent(c, rules);
  check_finish(c, rules);
  using actors::RoleKind;
  check_engine(c, RoleKind::Rollout, "rollout", c.rollout.engine, c.rollout.replicas, rules);
  check_engine(c, RoleKind::Trainer, "trainer", c.trainer.engine, 1, rules);
  for (const Teacher& t : teachers_by_engine(c))
    check_engine(c, RoleKind::Reference, t.engine_section, t.engine, t.replicas, rules);
  check_engine(c, RoleKind::Reward, "reward", c.reward.engine, c.reward.replicas, rules);
}

/// Of a teacher or a reward: more is a mistake, and its gradients are not finite.
constexpr double kMostWeight = 1e6;

void check_reference(const PipelineConfig& c, const trainer::Algorithm& a, Rules& rules) {
  const actors::EngineConfig& engine = c.reference.engine;
  rules.require(
      c.reference.replicas > 0 || !needs_reference(a),
      {"reference.replicas", "algorithm.kl", "algorithm.distillation", "algorithm.critic.kl"},
      fmt::format("must be at least 1 unless algorithm.kl and algorithm.distillation are "
                  "0; found 0 with algorithm.kl {} and algorithm.distillation {}{}",
                  a.kl,
                  a.distillation,
                  has_critic(a) && a.critic.kl > 0
                      ? fmt::format(" and algorithm.critic.kl {}", a.critic.kl)
                      : std::string()));
  rules.require(a.distillation >= 0 && a.distillation <= kMostWeight,
                {"algorithm.distillation"},
                fmt::format("must be from 0 to {:.0f}, found {}", kMostWeight, a.distillation));
  rules.require(
      a.reward_weight >= 0 && a.reward_weight <= kMostWeight &&
          (a.reward_weight > 0 || a.distillation > 0),
      {"algorithm.reward_weight", "algorithm.distillation"},
      fmt::format("must be above 0, or 0 with algorithm.distillation above 0, and at most "
                  "{:.0f}; found {}",
                  kMostWeight,
                  a.reward_weight));
  rules.require(!a.filter_equal_rewards || a.reward_weight > 0,
                {"algorithm.filter_equal_rewards", "algorithm.reward_weight"},
                "must be false with algorithm.reward_weight 0: a group with equal rewards has a "
                "gradient from the teacher");
  rules.require(a.distillation <= 0 || !c.reference.model.empty() ||
                    !c.reference.teachers.empty() || engine.kind != actors::EngineKind::Native ||
                    c.policy == actors::PolicyKind::Synthetic ||
                    c.hardware == HardwareKind::Simulated,
                {"reference.model", "algorithm.distillation", "reference.teachers"},
                "must name the teacher, because algorithm.distillation is above 0");
  rules.require(
      c.reference.model.empty() ||
          (c.hardware == HardwareKind::Local && !actors::is_server(engine.kind)),
      {"reference.model", "hardware", "reference.engine.kind"},
      "requires `hardware: local` (with `hardware: simulated`, `simulation.reference.model` names "
      "a description) and an engine that is not a server, which is told its model by its own "
      "`start` or `data`");
}

void check_algorithm(const PipelineConfig& c, Rules& rules) {
  const trainer::AlgorithmConfig& a = c.algorithm;
  const std::int64_t responses =
      std::int64_t{a.groups_per_update} * std::int64_t{a.responses_per_group};
  rules.require(
      responses % a.minibatches == 0,
      {"algorithm.minibatches", "algorithm.groups_per_update", "algorithm.responses_per_group"},
      fmt::format("must divide the number of responses of a step ({} x {} = {}), found {}",
                  a.groups_per_update,
                  a.responses_per_group,
                  responses,
                  a.minibatches));
  const trainer::Algorithm resolved = trainer::resolve(a, c.sampling.max_new_tokens);
  rules.require(c.policy != actors::PolicyKind::Torch || a.responses_per_group >= 2 ||
                    resolved.reward_weight == 0 || has_critic(resolved),
                {"algorithm.responses_per_group", "policy"},
                "must be at least 2, because an advantage is relative to the group; found 1; "
                "`algorithm.name: ppo_critic` needs only one");
  rules.require(resolved.clip_low >= 0 && resolved.clip_low <= 1,
                {"algorithm.clip_low"},
                fmt::format("must be from 0 to 1, found {}", resolved.clip_low));
  rules.require(resolved.clip_high >= 0,
                {"algorithm.clip_high"},
                fmt::format("must be at least 0, found {}", resolved.clip_high));
  rules.require(resolved.behaviour_weight_floor >= 0 && resolved.behaviour_weight_floor <= 1,
                {"algorithm.behaviour_weight_floor"},
                fmt::format("must be from 0 to 1, found {}", resolved.behaviour_weight_floor));
  rules.require(resolved.behaviour_weight_cap >= 1,
                {"algorithm.behaviour_weight_cap"},
                fmt::format("must be at least 1, found {}", resolved.behaviour_weight_cap));
  rules.require(resolved.overlong_buffer >= Tokens(0) &&
                    resolved.overlong_buffer <= c.sampling.max_new_tokens,
                {"algorithm.overlong_buffer", "sampling.max_new_tokens"},
                fmt::format("must be from 0 to sampling.max_new_tokens ({}), found {}",
                            c.sampling.max_new_tokens.count(),
                            resolved.overlong_buffer.count()));
  rules.require(!resolved.filter_equal_rewards || a.responses_per_group >= 2,
                {"algorithm.filter_equal_rewards", "algorithm.responses_per_group"},
                "requires at least 2 responses per group (algorithm.responses_per_group), found 1");
  check_schedule(c, rules);
  check_reference(c, resolved, rules);
  check_critic(c, resolved, rules);
  check_top_k(c, resolved, rules);
}

void check_transport(const PipelineConfig& c, Rules& rules) {
  const TransportSection& t = c.transport;
  rules.require(t.heartbeat_timeout >= 2 * t.heartbeat,
                {"transport.heartbeat_timeout", "transport.heartbeat"},
                fmt::format("must be at least twice transport.heartbeat ({}), found {}",
                            to_text(t.heartbeat),
                            to_text(t.heartbeat_timeout)));
  rules.require(t.kind != TransportKind::Tcp || !t.bind.empty(),
                {"transport.bind", "transport.kind"},
                "required by `transport.kind: tcp`");
  rules.require(
      t.kind != TransportKind::Tcp || t.security != TransportSecurity::Plain || is_loopback(t.bind),
      {"transport.security", "transport.bind"},
      fmt::format("`plain` is only allowed on 127.x.x.x, ::1 or localhost, which no other "
                  "machine can reach; found {}",
                  t.bind));
}

void check_evaluation(const PipelineConfig& c, Rules& rules) {
  const EvaluationSection& e = c.evaluation;
  if (e.every == 0)
    return;
  rules.require(
      !e.greedy || e.samples == 1,
      {"evaluation.samples", "evaluation.greedy"},
      fmt::format(
          "must be 1 with `evaluation.greedy`, which gives the same response each time, found {}; "
          "set evaluation.greedy to false",
          e.samples));
  rules.require(
      c.placement.switching == Switching::Together,
      {"evaluation.every", "placement.switching"},
      "not supported with `one_by_one`, whose engines have different versions; set it to 0");
  rules.require(c.hardware == HardwareKind::Local || c.policy != actors::PolicyKind::Torch,
                {"evaluation.every", "policy"},
                "not supported with `policy: torch` on simulated hardware; set it to 0");
}

}  // namespace

std::vector<BrokenRule> validate(const PipelineConfig& config,
                                 std::optional<Tokens> longest_prompt) {
  Rules rules;
  check_run(config, rules);
  if (config.policy == actors::PolicyKind::Torch)
    check_model(config, longest_prompt, rules);
  check_lora(config, rules);
  check_task(config, rules);
  check_teachers(config, rules);
  check_engines(config, rules);
  check_staleness(config, rules);
  check_algorithm(config, rules);
  const PlacementConfig placement = resolve_placement(config);
  check_placement(config, placement, rules);
  check_transport(config, rules);
  check_launch(config, rules);
  check_overlap(config, rules);
  check_preparing(config, rules);
  check_evaluation(config, rules);
  if (config.hardware == HardwareKind::Simulated)
    rules.add(check_simulation(config, placement));
  if (rules.hold())
    check_local_memory(config, rules);
  return rules.take();
}

}  // namespace temper::orchestrator
