#include "orchestrator/pipeline/changes.hpp"

#include "core/yaml.hpp"
#include "core/yaml_tree.hpp"

#include <fmt/format.h>

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

/// A rule for a key and all below it. `why` is empty where it may change.
struct Rule {
  std::string_view key;
  std::string_view why;
};

constexpr std::string_view kProblems = "the groups under way are of its problems";
constexpr std::string_view kRewards = "rewards of one group are compared with each other";
constexpr std::string_view kShape = "the checkpoint's weights have its shape";
constexpr std::string_view kUnderWay = "responses under way were begun with it";
constexpr std::string_view kAdmitted = "the groups under way were admitted by it";
constexpr std::string_view kPlaces = "the run's actors are of this kind and in these places";
constexpr std::string_view kTurns = "responses under way were begun under these turns on the cards";
constexpr std::string_view kFigures = "the evaluations so far would not compare with those to come";

/// The longest key that fits decides.
constexpr Rule kRules[] = {
    {"name", ""},
    {"seed", "everything random derives from it"},
    {"steps", ""},
    {"hardware", "the run would be another one"},
    {"policy", "the run would be another one"},
    {"task", kProblems},
    {"verifier", kRewards},
    {"verifier.pool", ""},
    {"verifier.deadline", ""},
    {"verifier.sandbox", ""},
    {"verifier.memory", ""},
    {"verifier.environment", ""},
    {"verifier.hidden", ""},
    {"model", kShape},
    {"pretrain", "the base checkpoint is made"},
    {"algorithm", ""},
    {"algorithm.groups_per_update", kAdmitted},
    {"algorithm.responses_per_group", kAdmitted},
    {"sampling", kUnderWay},
    {"staleness", kAdmitted},
    {"staleness.bound", ""},  // upwards: see refusal_of()
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
    {"trainer.engine.kind", "the checkpoint is of that trainer"},
    {"reference", kPlaces},
    {"reference.replicas", ""},  // but not from none or to none: see refusal_of()
    {"reference.engine", ""},
    {"reward", kPlaces},
    {"reward.replicas", ""},
    {"reward.engine", ""},
    {"synthetic", ""},
    {"synthetic.tokens", kUnderWay},
    {"transport", ""},
    {"deadlines", ""},
    {"checkpoint", ""},
    {"evaluation", kFigures},
    {"evaluation.every", ""},
    {"evaluation.keep_best", ""},
    {"samples", ""},
    {"tracking", ""},
    {"alarms", ""},
    {"simulation", "the run would be another one"},
};

bool within(std::string_view key, std::string_view rule) {
  return key.starts_with(rule) && (key.size() == rule.size() || key[rule.size()] == '.');
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
  for (const Rule& rule : kRules) {
    if (within(change.key, rule.key) && (best == nullptr || rule.key.size() > best->key.size()))
      best = &rule;
  }
  if (best == nullptr)
    return "nothing is known of what that would do";
  if (change.key == "staleness.bound") {
    if (std::strtod(change.to.c_str(), nullptr) < std::strtod(change.from.c_str(), nullptr))
      return "it may be raised only: groups under way were admitted by the one it had";
  }
  if (change.key == "reference.replicas" && (change.from == "0" || change.to == "0"))
    return "groups under way are scored by a reference, or are not";
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
  return invalid_input(fmt::format(
      "a run cannot be resumed with these settings:{}\nleave them as they were, or begin another "
      "run with its weights: --from",
      refused));
}

std::string changes_text(const std::vector<SettingChange>& changes) {
  std::string text;
  for (const SettingChange& c : changes)
    text += fmt::format("  {}: {} -> {}\n", c.key, c.from, c.to);
  return text;
}

}  // namespace temper::orchestrator
