#include "study/compare/compare.hpp"

#include "core/files.hpp"
#include "core/parse_name.hpp"
#include "core/statistics.hpp"
#include "core/yaml.hpp"
#include "orchestrator/pipeline/simulation.hpp"
#include "orchestrator/pipeline/validate.hpp"
#include "study/compare/compare_runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace temper::study {
namespace {

constexpr std::size_t kMostRuns = 20000;

/// Whether `list` contains `value`.
bool contains(const auto& list, const auto& value) {
  return std::ranges::find(list, value) != std::ranges::end(list);
}

// --- Validation

/// Keys that other options set, and the reason.
std::vector<std::pair<std::string, std::string>> decided(const CompareOptions& options) {
  std::vector<std::pair<std::string, std::string>> out{
      {"staleness.rule", "is set by --policies and --eta"},
      {"staleness.bound", "is set by --policies and --eta"},
      {"run_dir", "is set by the comparison"}};
  if (!options.seeds.empty())
    out.emplace_back("seed", "is set by --seeds");
  if (options.steps > 0)
    out.emplace_back("steps", "is set by --steps");
  return out;
}

Status check_sets(const CompareOptions& options) {
  auto keys = decided(options);
  for (const SweepAxis& axis : options.vary) {
    for (const std::string& key : axis.keys) {
      for (const auto& [other, who] : keys) {
        if (other == key)
          return invalid_input(fmt::format("--vary {}: {} {}; remove it", axis.name(), key, who));
      }
      keys.emplace_back(key, "is already set by --vary");
    }
  }
  for (const std::string& set : options.sets) {
    for (const auto& [key, who] : keys) {
      if (set.starts_with(key + "="))
        return invalid_input(fmt::format("--set {}: {} {}; remove it", set, key, who));
    }
  }
  return {};
}

Status check_etas(const CompareOptions& options) {
  for (const double eta : options.etas) {
    if (eta == std::floor(eta))
      continue;
    for (const orchestrator::StalenessRuleKind policy : options.policies) {
      if (policy == orchestrator::StalenessRuleKind::Sync || orchestrator::allows_fractions(policy))
        continue;
      return invalid_input(fmt::format("--eta {}: `{}` takes whole numbers; did you mean {} or {}?",
                                       eta,
                                       name_of(policy),
                                       std::floor(eta),
                                       std::ceil(eta)));
    }
  }
  return {};
}

/// The first error in the --vary options by themselves.
Status check_vary(const CompareOptions& options, const std::string& text) {
  for (const SweepAxis& axis : options.vary) {
    for (std::size_t place = 0; place < axis.values.size(); ++place) {
      std::vector<std::string> sets = options.sets;
      std::ranges::move(axis.sets(place), std::back_inserter(sets));
      const auto read =
          read_yaml<orchestrator::PipelineConfig>(options.config.string(), text, sets);
      if (!read.issues.empty()) {
        const YamlIssue& issue = read.issues.front();
        return invalid_input(fmt::format(
            "--vary {}={}: {}: {}", axis.name(), axis.text(place), issue.key, issue.message));
      }
      for (std::size_t other = 0; other < place; ++other) {
        if (axis.values[other] == axis.values[place])
          return invalid_input(
              fmt::format("--vary {}: {} is given twice", axis.name(), axis.text(place)));
      }
    }
  }
  return {};
}

Status check(const CompareOptions& options, const std::string& text) {
  if (!std::isfinite(options.target_reward))
    return invalid_input("--target-reward: expected a number");
  TEMPER_TRY_STATUS(check_sets(options));
  const auto read =
      read_yaml<orchestrator::PipelineConfig>(options.config.string(), text, options.sets);
  if (!read.issues.empty())
    return invalid_input(render(locate(read.document, read.issues)));
  TEMPER_TRY_STATUS(check_vary(options, text));
  return check_etas(options);
}

// --- Jobs

struct RuleAtBound {
  orchestrator::StalenessRuleKind policy;
  double eta;
};

std::vector<RuleAtBound> rules_at_bounds(const CompareOptions& options) {
  std::vector<RuleAtBound> out;
  if (contains(options.policies, orchestrator::StalenessRuleKind::Sync))
    out.push_back({orchestrator::StalenessRuleKind::Sync, 0});
  for (const double eta : options.etas) {
    for (const orchestrator::StalenessRuleKind policy : options.policies) {
      if (policy != orchestrator::StalenessRuleKind::Sync)
        out.push_back({policy, eta});
    }
  }
  return out;
}

Result<CompareJob> job_of(const CompareOptions& options,
                          const std::string& text,
                          const std::vector<std::string>& variant,
                          const RuleAtBound& at) {
  std::vector<std::string> sets = options.sets;
  sets.insert(sets.end(), variant.begin(), variant.end());
  sets.push_back(fmt::format("staleness.rule={}", name_of(at.policy)));
  sets.push_back(fmt::format("staleness.bound={}", at.eta));
  if (options.steps > 0)
    sets.push_back(fmt::format("steps={}", options.steps));
  auto read = read_yaml<orchestrator::PipelineConfig>(options.config.string(), text, sets);
  if (!read.issues.empty())
    return invalid_input(render(locate(read.document, std::move(read.issues))));
  CompareJob job{{}, std::move(read.value)};
  if (job.config.hardware == orchestrator::HardwareKind::Simulated)
    orchestrator::set_simulated_defaults(
        job.config, [&](const std::string& key) { return read.places.contains(key); });
  job.row.policy = name_of(at.policy);
  job.row.eta = at.eta;
  job.row.vary = fmt::format("{}", fmt::join(variant, " "));
  if (const Status status = check_rules(job.config); !status) {
    job.row.end = CompareEnd::NotRun;
    job.row.reason = status.error().context;
  }
  return job;
}

void fill(CompareRow& row, const Figures& figures) {
  const Rates& r = figures.whole;
  const TokenAccounts& f = figures.accounts;
  row.updates = r.updates;
  row.seconds = rounded(r.seconds, 1e3);
  row.trained_per_s = rounded(r.trained_per_s, 10);
  row.generated_per_s = rounded(r.generated_per_s, 10);
  row.busy = rounded(r.busy, 1e4);
  row.staleness_max = r.staleness_max;
  row.staleness_mean = rounded(r.staleness_mean, 1e3);
  for (const auto& [age, groups] : f.staleness)
    row.staleness += fmt::format("{}{}:{}", row.staleness.empty() ? "" : " ", age, groups);
  row.wasted = rounded(f.wasted_share, 1e4);
  row.groups_trained = f.groups_trained;
  row.groups_evicted = f.groups_evicted;
  row.trained_length = rounded(f.trained_length, 10);
  row.generated_length = rounded(f.generated_length, 10);
  row.begun_length = rounded(f.begun_length, 10);
  const double all = f.begun_length > 0 ? f.begun_length : f.generated_length;
  if (all > 0)
    row.bias = rounded(f.trained_length / all, 1e4);
}

}  // namespace

Result<std::vector<orchestrator::StalenessRuleKind>> parse_policies(
    const std::vector<std::string>& names) {
  const std::vector<std::string> known = enum_names<orchestrator::StalenessRuleKind>();
  std::vector<orchestrator::StalenessRuleKind> out;
  for (const std::string& name : names.empty() ? known : names) {
    TEMPER_TRY(const auto policy, parse_name<orchestrator::StalenessRuleKind>("--policies", name));
    if (contains(out, policy))
      return invalid_input(fmt::format("--policies: `{}` is given twice", name));
    out.push_back(policy);
  }
  return out;
}

bool is_real_run(const orchestrator::PipelineConfig& config) {
  return config.hardware == orchestrator::HardwareKind::Local ||
         config.policy == actors::PolicyKind::Torch;
}

Result<std::vector<CompareJob>> compare_jobs(const CompareOptions& options) {
  TEMPER_TRY(const std::string text, read_file(options.config));
  TEMPER_TRY_STATUS(check(options, text));
  const auto policies = rules_at_bounds(options);
  if (policies.empty())
    return invalid_input("nothing to compare; give at least one of --policies and one --eta");
  TEMPER_TRY(const auto all_variants, combinations(options.vary));
  const std::size_t seeds = std::max<std::size_t>(1, options.seeds.size());
  if (all_variants.size() > kMostRuns / policies.size() / seeds)
    return invalid_input(fmt::format(
        "the comparison has more than {} runs; reduce --eta, --seeds or --vary", kMostRuns));
  std::vector<CompareJob> jobs;
  for (const RuleAtBound& at : policies) {
    for (const auto& variant : all_variants) {
      TEMPER_TRY(CompareJob job, job_of(options, text, variant, at));
      for (std::size_t i = 0; i < seeds; ++i) {
        if (!options.seeds.empty())
          job.config.seed = options.seeds[i];
        job.row.seed = job.config.seed;
        jobs.push_back(job);
      }
    }
  }
  return jobs;
}

Result<PolicyComparison> compare(const CompareOptions& options) {
  TEMPER_TRY(std::vector<CompareJob> jobs, compare_jobs(options));
  PolicyComparison done;
  done.target_reward = options.target_reward;
  std::vector<std::size_t> real, counted;
  std::vector<orchestrator::PipelineConfig> configs;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (jobs[i].row.end == CompareEnd::NotRun)
      continue;
    if (jobs[i].config.hardware == orchestrator::HardwareKind::Local)
      done.time = PolicyComparison::Time::Wall;
    (is_real_run(jobs[i].config) ? real : counted).push_back(i);
    if (!is_real_run(jobs[i].config))
      configs.push_back(jobs[i].config);
  }
  std::vector<std::optional<Result<Figures>>> figures(jobs.size());
  TEMPER_TRY(done.end, make_real_runs(options, jobs, real, figures));
  if (done.end == PolicyComparison::End::Stopped)
    configs.clear(), counted.clear();
  auto results = simulate_all(configs, options.simulate);
  for (std::size_t i = 0; i < counted.size(); ++i)
    figures[counted[i]] = std::move(results[i]);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    CompareRow& row = jobs[i].row;
    auto& rewards = done.rewards.emplace_back();
    if (!figures[i] && row.end == CompareEnd::Ran) {
      row.end = CompareEnd::NotRun;
      row.reason = "stopped on request";
    } else if (figures[i] && !*figures[i]) {
      const Error& error = figures[i]->error();
      row.end = CompareEnd::Failed;
      row.reason = error.context;
    } else if (figures[i]) {
      fill(row, **figures[i]);
      if (jobs[i].config.policy == actors::PolicyKind::Torch) {
        rewards = std::move((**figures[i]).rewards);
        const LearningFigures l = learning_figures(rewards, options.target_reward);
        row.final_reward = rounded(l.final_reward, 1e4);
        row.steps_to_target = l.steps_to_target;
        if (l.seconds_to_target)
          row.seconds_to_target = rounded(*l.seconds_to_target, 1e3);
      }
    }
    done.rows.push_back(std::move(row));
  }
  return done;
}

}  // namespace temper::study
