#include "orchestrator/pipeline/changes.hpp"

#include "core/yaml.hpp"
#include "core/yaml_tree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>

namespace temper::orchestrator {
namespace {

using Flat = std::map<std::string, std::string>;

void flatten(const YamlNode& node, const std::string& key, Flat& to) {
  if (node.kind == YamlNode::Kind::Map) {
    for (const YamlNode::Entry& entry : node.entries)
      flatten(entry.node, key.empty() ? entry.key : key + "." + entry.key, to);
  } else if (node.kind == YamlNode::Kind::List) {
    std::string text;
    for (const YamlNode::Entry& entry : node.entries)
      text += (text.empty() ? "" : ", ") + entry.node.text;
    to[key] = "[" + text + "]";
  } else {
    to[key] = node.text;
  }
}

/// Applies to a key and all keys below it. `why`: why it cannot change; empty if it may.
struct Rule {
  std::string_view key;
  std::string_view why;
};

constexpr std::string_view kProblems = "unfinished groups use problems of this task";
constexpr std::string_view kRewards = "rewards within a group must be comparable";
constexpr std::string_view kShape = "the weights in the checkpoint have this shape";
constexpr std::string_view kAdapter = "the checkpoint holds an adapter of this shape and scale";
constexpr std::string_view kUnderWay = "unfinished responses started with this setting";
constexpr std::string_view kAdmitted = "unfinished groups were admitted under this setting";
constexpr std::string_view kScored = "unfinished groups were scored under this setting";
constexpr std::string_view kPlaces = "the actors of the run are fixed";
constexpr std::string_view kTurns = "unfinished responses started under this sharing of cards";
constexpr std::string_view kFigures = "later evaluations would not be comparable with earlier ones";

/// The longest matching key decides.
constexpr Rule kRules[] = {
    {"name", ""},
    {"seed", "all random numbers of the run derive from it"},
    {"steps", ""},
    {"hardware", "it would be a different run"},
    {"policy", "it would be a different run"},
    {"task", kProblems},
    {"task.set_aside", ""},
    {"verifier", kRewards},
    {"verifier.pool", ""},
    {"verifier.deadline", ""},
    {"verifier.sandbox", ""},
    {"verifier.memory", ""},
    {"verifier.environment", ""},
    {"verifier.hidden", ""},
    {"verifier.judge.url", ""},
    {"verifier.judge.key_variable", ""},
    {"verifier.judge.attempts", ""},
    {"verifier.judge.cache", ""},
    {"verifier.judge.input_price", ""},
    {"verifier.judge.output_price", ""},
    {"verifier.model.device", ""},
    {"verifier.model.batch", ""},
    {"model", kShape},
    {"model.lora", kAdapter},
    {"pretrain", "the base checkpoint already exists"},
    {"algorithm", ""},
    {"algorithm.groups_per_update", kAdmitted},
    {"algorithm.responses_per_group", kAdmitted},
    {"algorithm.distillation_top_k", kScored},
    {"sampling", kUnderWay},
    {"staleness", kAdmitted},
    {"staleness.bound", ""},  // Only upward: see refusal_of().
    {"stragglers", kAdmitted},
    {"placement", ""},
    {"placement.mode", kTurns},
    {"placement.switching", kTurns},
    {"placement.lending", kAdmitted},
    {"placement.return_share", kAdmitted},
    {"placement.crowding", kAdmitted},
    {"rollout", kPlaces},
    {"rollout.replicas", ""},
    {"rollout.concurrency", ""},
    {"rollout.on_new_weights", ""},
    {"rollout.agent", kUnderWay},
    {"rollout.agent.deadline", ""},
    {"rollout.engine", ""},
    {"rollout.engine.kind", kUnderWay},
    {"trainer", kPlaces},
    {"trainer.engine", ""},
    {"trainer.engine.kind", "only this kind of trainer can read the checkpoint"},
    {"reference", kPlaces},
    {"reference.replicas", ""},  // Not from or to 0: see refusal_of().
    {"reference.engine", ""},
    {"reference.model", kUnderWay},
    {"reference.teachers", kUnderWay},
    {"reward", kPlaces},
    {"reward.replicas", ""},
    {"reward.engine", ""},
    {"synthetic", ""},
    {"synthetic.tokens", kUnderWay},
    {"transport", ""},
    {"payloads", ""},
    {"deadlines", ""},
    {"checkpoint", ""},
    {"evaluation", kFigures},
    {"evaluation.every", ""},
    {"evaluation.keep_best", ""},
    {"samples", ""},
    {"tracking", ""},
    {"alarms", ""},
    {"cost", ""},
    {"simulation", "it would be a different run"},
};

/// The rules of a verifier apply to each term of a sum.
std::string without_term(const std::string& key) {
  constexpr std::string_view kTerms = "verifier.terms.";
  const std::size_t end = key.find('.', kTerms.size());
  return key.starts_with(kTerms) && end != std::string::npos ? "verifier" + key.substr(end) : key;
}

bool within(std::string_view key, std::string_view rule) {
  return key.starts_with(rule) && (key.size() == rule.size() || key[rule.size()] == '.');
}

/// How much of a source of the task is dispatched, rather than what is in it.
bool is_weight(std::string_view key) {
  constexpr std::string_view kSources = "task.sources.";
  if (!key.starts_with(kSources))
    return false;
  key.remove_prefix(std::min(key.find('.', kSources.size()), key.size() - 1) + 1);
  return within(key, "weight") || within(key, "schedule");
}

/// How a teacher works, rather than which it is.
bool is_of_actors_of_teacher(std::string_view key) {
  constexpr std::string_view kTeachers = "reference.teachers.";
  if (!key.starts_with(kTeachers))
    return false;
  key.remove_prefix(std::min(key.find('.', kTeachers.size()), key.size() - 1) + 1);
  return within(key, "replicas") || within(key, "engine") || within(key, "cards");
}

}  // namespace

Flat flat_settings(std::string_view yaml) {
  Flat flat;
  flatten(YamlDocument("config.yaml", yaml, {}).root(), "", flat);
  return flat;
}

std::vector<SettingChange> changed_settings(const PipelineConfig& before,
                                            const PipelineConfig& after) {
  const Flat a = flat_settings(to_yaml(before)), b = flat_settings(to_yaml(after));
  std::set<std::string> keys;
  for (const Flat* flat : {&a, &b}) {
    for (const auto& [key, value] : *flat)
      keys.insert(key);
  }
  keys.erase("run_dir");
  const auto value_in = [](const Flat& flat, const std::string& key) {
    const auto it = flat.find(key);
    return it == flat.end() ? std::string("-") : it->second;
  };
  std::vector<SettingChange> changes;
  for (const std::string& key : keys) {
    if (SettingChange c{key, value_in(a, key), value_in(b, key)}; c.from != c.to)
      changes.push_back(std::move(c));
  }
  return changes;
}

std::string refusal_of(const SettingChange& change) {
  const Rule* best = nullptr;
  const std::string key = without_term(change.key);
  for (const Rule& rule : kRules) {
    if (within(key, rule.key) && (best == nullptr || rule.key.size() > best->key.size()))
      best = &rule;
  }
  if (best == nullptr)
    return "this setting cannot change during a run";
  if (is_weight(change.key) || is_of_actors_of_teacher(change.key))
    return {};
  if (change.key == "staleness.bound") {
    if (std::strtod(change.to.c_str(), nullptr) < std::strtod(change.from.c_str(), nullptr))
      return "it can only be raised, because unfinished groups were admitted under the old bound";
  }
  if (change.key == "reference.replicas" && (change.from == "0" || change.to == "0"))
    return "unfinished groups expect the old setting: scored by a reference, or not scored";
  if (change.key == "rollout.on_new_weights" && change.to == "finish")
    return "unfinished responses may have tokens of an older version";
  return std::string(best->why);
}

Status check_changes(const std::vector<SettingChange>& changes) {
  std::string refused;
  for (const SettingChange& change : changes) {
    if (const std::string why = refusal_of(change); !why.empty())
      refused += fmt::format("\n  {}: {} -> {}: {}", change.key, change.from, change.to, why);
  }
  if (refused.empty())
    return {};
  return invalid_input(
      fmt::format("the run cannot be resumed with these changed settings:{}\nrestore the old "
                  "values, or start a new "
                  "run from its weights with --from",
                  refused));
}

std::string changes_text(const std::vector<SettingChange>& changes) {
  std::string text;
  for (const SettingChange& c : changes)
    text += fmt::format("  {}: {} -> {}\n", c.key, c.from, c.to);
  return text;
}

}  // namespace temper::orchestrator
