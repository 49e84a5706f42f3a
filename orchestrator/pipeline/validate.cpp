#include "orchestrator/pipeline/validate.hpp"

#include "actors/server/url.hpp"
#include "actors/task/tokenizer.hpp"
#include "orchestrator/pipeline/placement.hpp"
#include "orchestrator/pipeline/simulation.hpp"
#include "trainer/algorithm_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <regex>
#include <tuple>

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
  using P = PolicyRule;
  const StalenessConfig& s = c.staleness;
  rules.require(allows_fractions(s.policy) || s.bound == std::floor(s.bound),
                {"staleness.bound", "staleness.policy"},
                fmt::format("must be whole for `{}`, found {}", name_of(s.policy), s.bound));
  rules.require(s.policy != P::Drop || s.bound >= 1,
                {"staleness.bound", "staleness.policy"},
                fmt::format("must be at least 1 for `drop`, which evicts what is as old as the "
                            "bound, found {}",
                            s.bound));
  rules.require(s.policy != P::Sync || s.bound == 0,
                {"staleness.bound", "staleness.policy"},
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
  const std::int32_t tokens = actors::Tokenizer::for_task(c.task).vocabulary();
  rules.require(!m.path.empty() || m.vocabulary.value_or(tokens) >= tokens,
                {"model.vocabulary", "task.tokenizer"},
                fmt::format("must hold the {} tokens of the task's tokenizer, found {}",
                            tokens,
                            m.vocabulary.value_or(tokens)));
  const auto outside = [&](std::int32_t t) { return t < 0 || t >= m.vocabulary.value_or(tokens); };
  rules.require(std::ranges::none_of(m.end_tokens, outside),
                {"model.end_tokens", "model.vocabulary"},
                fmt::format("must be below the vocabulary of {}", m.vocabulary.value_or(tokens)));
  const Tokens response = c.sampling.max_new_tokens;
  const Tokens prompt = longest_prompt.value_or(Tokens(1));
  rules.require(m.context >= prompt + response,
                {"model.context", "sampling.max_new_tokens", "task.path", "task.digits"},
                fmt::format("must hold the longest prompt ({}) and sampling.max_new_tokens ({}), "
                            "found {}",
                            longest_prompt ? fmt::format("{} tokens", prompt.count())
                                           : std::string("at least 1 token"),
                            response.count(),
                            m.context.count()));
  rules.require(c.algorithm.micro_batch_tokens >= m.context,
                {"algorithm.micro_batch_tokens", "model.context"},
                fmt::format("must hold one sequence of model.context ({}) tokens, found {}",
                            m.context.count(),
                            c.algorithm.micro_batch_tokens.count()));
}

void check_task(const PipelineConfig& c, Rules& rules) {
  rules.require(c.task.kind != actors::TaskKind::Jsonl || !c.task.path.empty(),
                {"task.path", "task.kind"},
                "needed by `task.kind: jsonl`");
  const actors::VerifierConfig& v = c.verifier;
  rules.require(
      v.kind != actors::VerifierKind::Command || (!v.command.empty() && !v.command.front().empty()),
      {"verifier.command", "verifier.kind"},
      "needed by `verifier.kind: command`");
  rules.require(
      v.kind != actors::VerifierKind::Python || !v.function.empty() || !v.functions.empty(),
      {"verifier.function", "verifier.kind"},
      "needed by `verifier.kind: python`");
  if (v.kind != actors::VerifierKind::Regex)
    return;
  rules.require(!v.pattern.empty(),
                {"verifier.pattern", "verifier.kind"},
                "needed by `verifier.kind: regex`");
  constexpr std::string_view kAnswer = "{answer}";
  std::string pattern;  // With an answer in its place, as it will be used.
  std::string_view rest = v.pattern;
  for (auto at = rest.find(kAnswer); at != std::string_view::npos; at = rest.find(kAnswer)) {
    pattern.append(rest.substr(0, at)).append("0");
    rest.remove_prefix(at + kAnswer.size());
  }
  pattern.append(rest);
  try {
    const std::regex compiled(pattern, std::regex::ECMAScript);
  } catch (const std::regex_error& e) {  // The only way std::regex reports.
    rules.require(false,
                  {"verifier.pattern", "verifier.kind"},
                  fmt::format("not an ECMAScript regular expression: {}", e.what()));
  }
}

/// What a section says of its servers, whatever is there when they are looked for.
void check_servers(const std::string& role,
                   const actors::EngineConfig& engine,
                   std::int32_t replicas,
                   Rules& rules) {
  const std::string key = role + ".engine.";
  const bool possible = role == "rollout" || role == "reference";
  rules.require(
      possible, {key + "kind"}, fmt::format("no inference server can do the work of a {}", role));
  if (!possible)
    return;
  const auto count = static_cast<std::size_t>(std::max(1, replicas));
  rules.require(!engine.data.empty() || !engine.start.empty(),
                {key + "data", key + "kind"},
                "needs the servers' addresses, or a command in `start`");
  for (const auto& [name, addresses] :
       {std::pair("data", &engine.data), std::pair("control", &engine.control)}) {
    if (addresses->empty())
      continue;
    const Status fits = actors::check_servers(*addresses, count);
    rules.require(fits.has_value(),
                  {key + name, role + ".replicas"},
                  fits ? std::string() : fits.error().context);
  }
  rules.require(engine.start.empty() || !engine.data.empty() ||
                    engine.start.find("{port}") != std::string::npos,
                {key + "start", key + "data"},
                "must name {port}, or `data` must say where the server will be");
}

/// Who does a role's work, where it is not our own engine.
void check_engine(const PipelineConfig& c,
                  const std::string& role,
                  const actors::EngineConfig& engine,
                  std::int32_t replicas,
                  Rules& rules) {
  using Kind = actors::EngineKind;
  const std::string key = role + ".engine.";
  if (actors::is_server(engine.kind))
    check_servers(role, engine, replicas, rules);
  const std::size_t colon = engine.use.find(':');
  rules.require(engine.kind == Kind::Native || c.hardware == HardwareKind::Local,
                {key + "kind", "hardware"},
                fmt::format("`{}` works on `hardware: local`; simulated actors are our own",
                            name_of(engine.kind)));
  rules.require(engine.kind != Kind::Python ||
                    (colon != std::string::npos && colon > 0 && colon + 1 < engine.use.size()),
                {key + "use", key + "kind"},
                fmt::format("must be `module:Class`, found \"{}\"", engine.use));
  rules.require(
      engine.kind != Kind::Command || (!engine.command.empty() && !engine.command.front().empty()),
      {key + "command", key + "kind"},
      "needed by `kind: command`");
}

void check_engines(const PipelineConfig& c, Rules& rules) {
  check_engine(c, "rollout", c.rollout.engine, c.rollout.replicas, rules);
  check_engine(c, "trainer", c.trainer.engine, 1, rules);
  check_engine(c, "reference", c.reference.engine, c.reference.replicas, rules);
  check_engine(c, "reward", c.reward.engine, c.reward.replicas, rules);
  rules.require(
      !actors::is_server(c.rollout.engine.kind) || c.placement.mode == PlacementMode::Separate,
      {"rollout.engine.kind", "placement.mode"},
      fmt::format("an inference server keeps its cards: use `mode: separate`, found `{}`",
                  name_of(c.placement.mode)));
  rules.require(
      c.verifier.kind != actors::VerifierKind::Python || c.hardware == HardwareKind::Local,
      {"verifier.kind", "hardware"},
      "`python` works on `hardware: local`");
}

void check_algorithm(const PipelineConfig& c, Rules& rules) {
  const trainer::AlgorithmConfig& a = c.algorithm;
  const std::int64_t responses =
      std::int64_t{a.groups_per_update} * std::int64_t{a.responses_per_group};
  rules.require(
      responses % a.minibatches == 0,
      {"algorithm.minibatches", "algorithm.groups_per_update", "algorithm.responses_per_group"},
      fmt::format("must divide the responses of an update ({} x {} = {}), found {}",
                  a.groups_per_update,
                  a.responses_per_group,
                  responses,
                  a.minibatches));
  rules.require(c.policy != actors::PolicyKind::Torch || a.responses_per_group >= 2,
                {"algorithm.responses_per_group", "policy"},
                "must be at least 2: an advantage is relative to the rest of the group");
  const trainer::Algorithm resolved = trainer::resolve(a, c.sampling.max_new_tokens);
  rules.require(resolved.clip_low >= 0 && resolved.clip_low <= 1,
                {"algorithm.clip_low"},
                fmt::format("must be from 0 to 1, found {}", resolved.clip_low));
  rules.require(resolved.clip_high >= 0,
                {"algorithm.clip_high"},
                fmt::format("must be at least 0, found {}", resolved.clip_high));
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
                "needs at least 2 responses per group: one alone always equals itself");
  rules.require(c.reference.replicas > 0 || a.kl == 0,
                {"reference.replicas", "algorithm.kl"},
                fmt::format("0 is possible only if algorithm.kl is 0, found {}", a.kl));
  rules.require(c.reward.replicas > 0, {"reward.replicas"}, "must be at least 1, found 0");
}

std::string joined(const std::vector<CardId>& cards) {
  return fmt::format("[{}]", fmt::join(cards, ", "));
}

bool contains(const std::vector<CardId>& cards, CardId card) {
  return std::find(cards.begin(), cards.end(), card) != cards.end();
}

void check_cards(const std::string& key,
                 const std::vector<CardId>& cards,
                 std::int32_t count,
                 Rules& rules) {
  for (std::size_t i = 0; i < cards.size(); ++i) {
    const std::vector<std::string> keys{fmt::format("{}[{}]", key, i), key, "placement.cards"};
    rules.require(
        cards[i].value() < static_cast<std::uint32_t>(count),
        keys,
        fmt::format(
            "there are {} cards (placement.cards), numbered from 0; found {}", count, cards[i]));
    rules.require(
        std::count(cards.begin(), cards.begin() + static_cast<std::ptrdiff_t>(i), cards[i]) == 0,
        keys,
        fmt::format("card {} is listed twice", cards[i]));
  }
}

/// Cards that are given by number only: not beside a list of them, nor where all are shared.
void check_card_counts(const PlacementConfig& given, bool everywhere, Rules& rules) {
  for (const auto& [count, cards, role] :
       {std::tuple(given.rollout_cards, &given.rollout, "rollout"),
        std::tuple(given.reference_cards, &given.reference, "reference")}) {
    const std::string key = fmt::format("placement.{}_cards", role);
    rules.require(count == 0 || cards->empty(),
                  {key, fmt::format("placement.{}", role)},
                  fmt::format("placement.{} lists the cards already; give one of the two", role));
    rules.require(count == 0 || !everywhere,
                  {key, "placement.mode"},
                  fmt::format("in `{}` mode every role has every card", name_of(given.mode)));
  }
}

/// Where every role has every card: the role's are the trainer's.
void check_same_cards(const std::string& role,
                      std::vector<CardId> cards,
                      const PlacementConfig& p,
                      const std::vector<std::string>& keys,
                      Rules& rules) {
  std::vector<CardId> trainer = p.trainer;
  std::sort(cards.begin(), cards.end());
  std::sort(trainer.begin(), trainer.end());
  rules.require(cards == trainer,
                keys,
                fmt::format("in `{}` mode {} and trainer have the same cards, found {} {} and "
                            "trainer {}",
                            name_of(p.mode),
                            role,
                            role,
                            joined(cards),
                            joined(p.trainer)));
}

/// `p`: the section resolved.
void check_placement(const PipelineConfig& c, const PlacementConfig& p, Rules& rules) {
  const PlacementConfig& given = c.placement;
  check_cards("placement.rollout", given.rollout, given.cards, rules);
  check_cards("placement.trainer", given.trainer, given.cards, rules);
  check_cards("placement.reference", given.reference, given.cards, rules);
  check_cards("placement.reward", given.reward, given.cards, rules);

  const bool everywhere =
      given.mode == PlacementMode::Colocated || given.mode == PlacementMode::Fused;
  check_card_counts(given, everywhere, rules);

  const std::vector<std::string> keys{!given.trainer.empty()    ? "placement.trainer"
                                      : given.rollout_cards > 0 ? "placement.rollout_cards"
                                                                : "placement.rollout",
                                      "placement.mode",
                                      "placement.cards",
                                      "placement.rollout",
                                      "placement.trainer"};
  if (everywhere) {
    check_same_cards("rollout", p.rollout, p, keys, rules);
    if (p.mode == PlacementMode::Fused && c.reference.replicas > 0)
      check_same_cards("reference", p.reference, p, keys, rules);
    return;
  }
  if (p.cards < 2) {
    rules.require(false,
                  {"placement.cards", "placement.mode"},
                  fmt::format("`{}` mode needs at least 2 cards, found 1; or use `mode: colocated`",
                              name_of(p.mode)));
    return;
  }
  rules.require(!p.rollout.empty() && !p.trainer.empty(),
                keys,
                fmt::format("leaves no card to the {}", p.rollout.empty() ? "rollout" : "trainer"));
  const std::int64_t counted = std::int64_t{given.rollout_cards} + given.reference_cards;
  rules.require(counted <= p.cards,
                {given.rollout_cards > 0 ? "placement.rollout_cards" : "placement.reference_cards",
                 "placement.cards",
                 "placement.rollout_cards",
                 "placement.reference_cards"},
                fmt::format("{} cards are given away of {} (placement.cards)", counted, p.cards));
  std::vector<CardId> shared;
  for (const CardId card : p.rollout) {
    if (contains(p.trainer, card) && !contains(shared, card))
      shared.push_back(card);
  }
  rules.require(shared.empty(),
                keys,
                fmt::format("in `{}` mode rollout and trainer share no card, found {} in both",
                            name_of(p.mode),
                            joined(shared)));
}

/// What only simulated actors can do, and what it needs.
void check_overlap(const PipelineConfig& c, Rules& rules) {
  const bool simulated = c.hardware == HardwareKind::Simulated;
  if (c.placement.switching == Switching::OneByOne) {
    const PlacementMode mode = c.placement.mode;
    rules.require(simulated && (mode == PlacementMode::Fused || mode == PlacementMode::Colocated),
                  {"placement.switching", "placement.mode", "hardware"},
                  "`one_by_one` is for `hardware: simulated` in `fused` or `colocated` mode");
    rules.require(c.reference.replicas <= 1 || mode != PlacementMode::Fused,
                  {"reference.replicas", "placement.switching"},
                  fmt::format("one reference moves with the cards that switch one by one, found {}",
                              c.reference.replicas));
  }
  if (!c.stragglers.prepare)
    return;
  const PolicyRule rule = c.staleness.policy;
  rules.require(simulated,
                {"stragglers.prepare", "hardware"},
                "gradients are prepared on `hardware: simulated` only");
  rules.require(rule == PolicyRule::Exact || rule == PolicyRule::Sync,
                {"stragglers.prepare", "staleness.policy"},
                fmt::format("`{}` does not say beforehand which groups an update takes; `exact` "
                            "and `sync` do",
                            name_of(rule)));
  rules.require(
      c.algorithm.minibatches == 1,
      {"stragglers.prepare", "algorithm.minibatches"},
      fmt::format("gradients of a second minibatch depend on the first; needs 1, found {}",
                  c.algorithm.minibatches));
}

/// Addresses that only this machine reaches.
bool is_loopback(std::string_view address) {
  return address == "localhost" || address.starts_with("127.") || address == "::1" ||
         address == "[::1]";
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
                "needed by `transport.kind: tcp`");
  rules.require(
      t.kind != TransportKind::Tcp || t.security != TransportSecurity::Plain || is_loopback(t.bind),
      {"transport.security", "transport.bind"},
      fmt::format("`plain` is only possible on 127.x.x.x, ::1 or localhost, where no other "
                  "machine reaches it; found {}",
                  t.bind));
}

}  // namespace

bool allows_fractions(PolicyRule rule) {
  return rule == PolicyRule::Aggregate || rule == PolicyRule::Count;
}

namespace {

void check_evaluation(const PipelineConfig& c, Rules& rules) {
  const EvaluationSection& e = c.evaluation;
  if (e.every == 0)
    return;
  rules.require(!e.greedy || e.samples == 1,
                {"evaluation.samples", "evaluation.greedy"},
                fmt::format("must be 1 where `greedy` gives the same response each time, found {}; "
                            "set evaluation.greedy to false",
                            e.samples));
  rules.require(c.placement.switching == Switching::Together,
                {"evaluation.every", "placement.switching"},
                "cannot be with `one_by_one`, whose engines have different versions; set it to 0");
  rules.require(c.hardware == HardwareKind::Local || c.policy != actors::PolicyKind::Torch,
                {"evaluation.every", "policy"},
                "cannot be with a real policy on simulated hardware; set it to 0");
}

}  // namespace

std::vector<BrokenRule> validate(const PipelineConfig& config,
                                 std::optional<Tokens> longest_prompt) {
  Rules rules;
  check_run(config, rules);
  if (config.policy == actors::PolicyKind::Torch)
    check_model(config, longest_prompt, rules);
  check_task(config, rules);
  check_engines(config, rules);
  check_staleness(config, rules);
  check_algorithm(config, rules);
  const PlacementConfig placement = resolve_placement(config);
  check_placement(config, placement, rules);
  check_transport(config, rules);
  check_overlap(config, rules);
  check_evaluation(config, rules);
  if (config.hardware == HardwareKind::Simulated)
    rules.add(check_simulation(config, placement));
  return rules.take();
}

}  // namespace temper::orchestrator
