#include "orchestrator/pipeline/teachers.hpp"

#include "orchestrator/pipeline/source_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

namespace temper::orchestrator {
namespace {

const std::string kTeachers = "reference.teachers";

/// Index of the teacher of this name, if there is one.
std::optional<std::uint8_t> number_of(const PipelineConfig& c, const std::string& name) {
  const auto it = c.reference.teachers.find(name);
  if (it == c.reference.teachers.end())
    return std::nullopt;
  return static_cast<std::uint8_t>(std::distance(c.reference.teachers.begin(), it));
}

/// "`code`, `math`".
std::string names_text(const PipelineConfig& c) {
  std::string text;
  for (const auto& [name, teacher] : c.reference.teachers)
    text += fmt::format("{}`{}`", text.empty() ? "" : ", ", name);
  return text;
}

void check_model_of(const PipelineConfig& c, const Teacher& t, Rules& rules) {
  const bool server = actors::is_server(t.engine.kind);
  const bool native = t.engine.kind == actors::EngineKind::Native;
  rules.require(!t.model.empty() || !native || c.policy == actors::PolicyKind::Synthetic,
                {t.model_key(), t.section},
                "must name the model of the teacher");
  rules.require(t.model.empty() || (c.hardware == HardwareKind::Local && !server),
                {t.model_key(), "hardware", t.engine_section + ".engine.kind"},
                "requires `hardware: local` and an engine that is not a server, which is told its "
                "model by its own `start` or `data`");
  rules.require(!server || t.engine_section == t.section,
                {t.section, "reference.engine.kind"},
                "requires an `engine` of its own: a server has one model, and the one of "
                "`reference.engine` would be that of every teacher");
}

/// Checks the devices that teachers name: either all do, or none.
void check_cards_of(const PipelineConfig& c, const std::vector<Teacher>& teachers, Rules& rules) {
  if (std::ranges::all_of(teachers, [](const Teacher& t) { return t.cards.empty(); }))
    return;
  std::set<CardId> taken;
  for (const Teacher& t : teachers) {
    const std::string key = t.section + ".cards";
    rules.require(!t.cards.empty(),
                  {key, t.section},
                  "required, because another teacher names its devices; give all of them, or none");
    for (const CardId card : t.cards) {
      rules.require(card.value() < static_cast<std::uint32_t>(c.placement.cards),
                    {key, "placement.cards"},
                    fmt::format("must be below the number of cards (placement.cards: {}), found {}",
                                c.placement.cards,
                                card));
      rules.require(taken.insert(card).second,
                    {key, kTeachers},
                    fmt::format("card {} is listed twice", card));
    }
  }
  const std::string first = teachers.front().section + ".cards";
  rules.require(c.hardware == HardwareKind::Local,
                {first, "hardware"},
                "requires `hardware: local`; simulated references have the same number of cards");
  rules.require(c.placement.reference.empty() && c.placement.reference_cards == 0,
                {first, "placement.reference", "placement.reference_cards"},
                "excludes `placement.reference` and `placement.reference_cards`; remove them");
  rules.require(!traits_of(c.placement.mode).shares_reference,
                {first, "placement.mode"},
                fmt::format("not allowed in `{}` mode, where references time-share the cards of "
                            "the trainer",
                            name_of(c.placement.mode)));
}

void check_each(const PipelineConfig& c, Rules& rules) {
  const std::vector<Teacher> teachers = teachers_of(c);
  rules.require(teachers.size() <= TeacherPlan::kMost,
                {kTeachers},
                fmt::format("must be at most {}, found {}", TeacherPlan::kMost, teachers.size()));
  rules.require(c.reference.model.empty(),
                {"reference.model", kTeachers},
                "excludes `reference.teachers`; make it one of the teachers");
  rules.require(c.reference.replicas > 0,
                {"reference.replicas", kTeachers},
                "must be at least 1 with `reference.teachers`, found 0");
  for (const Teacher& t : teachers) {
    rules.require(is_source_name(t.name),
                  {t.section, kTeachers},
                  "the name of a teacher must be 1 to 64 letters, digits, '-' or '_', since actors "
                  "are named by it");
    check_model_of(c, t, rules);
    rules.require(
        c.reference.launch == LaunchKind::Local || t.engine.kind == teachers.front().engine.kind,
        {t.engine_section + ".engine.kind", "reference.launch"},
        fmt::format("must be the same for all teachers with `reference.launch: attach`, so that "
                    "any attached worker can be of any; found `{}` and `{}`",
                    name_of(teachers.front().engine.kind),
                    name_of(t.engine.kind)));
  }
  check_cards_of(c, teachers, rules);
}

/// Checks that each source names a teacher, and each teacher is named.
void check_sources_of(const PipelineConfig& c, Rules& rules) {
  std::set<std::string> used;
  for (const auto& [name, source] : c.task.sources) {
    const std::string key = fmt::format("task.sources.{}.teacher", name);
    rules.require(!source.teacher.empty(),
                  {key, "task.sources." + name, kTeachers},
                  fmt::format("required by `reference.teachers`; expected one of {}, or "
                              "`task.teacher_column`",
                              names_text(c)));
    rules.require(
        source.teacher.empty() || number_of(c, source.teacher),
        {key, kTeachers},
        fmt::format(
            "expected one of {} (reference.teachers), found `{}`", names_text(c), source.teacher));
    used.insert(source.teacher);
  }
  for (const auto& [name, teacher] : c.reference.teachers) {
    rules.require(used.contains(name),
                  {fmt::format("{}.{}", kTeachers, name), "task.sources"},
                  "no source in `task.sources` names this teacher; name it in the key `teacher` of "
                  "a source, or remove it");
  }
}

}  // namespace

std::vector<Teacher> teachers_of(const PipelineConfig& config) {
  const ReferenceConfig& r = config.reference;
  std::vector<Teacher> teachers;
  if (r.teachers.empty()) {
    return {{.name = {},
             .number = {},
             .section = "reference",
             .engine_section = "reference",
             .model = r.model,
             .engine = r.engine,
             .replicas = r.replicas,
             .cards = {}}};
  }
  for (const auto& [name, teacher] : r.teachers) {
    const std::string section = fmt::format("{}.{}", kTeachers, name);
    teachers.push_back({.name = name,
                        .number = static_cast<std::uint32_t>(teachers.size()),
                        .section = section,
                        .engine_section = teacher.engine ? section : "reference",
                        .model = teacher.model,
                        .engine = teacher.engine.value_or(r.engine),
                        .replicas = teacher.replicas.value_or(r.replicas),
                        .cards = teacher.cards});
  }
  return teachers;
}

std::vector<Teacher> teachers_by_engine(const PipelineConfig& config) {
  std::vector<Teacher> teachers = teachers_of(config);
  std::set<std::string> seen;
  std::erase_if(teachers, [&](const Teacher& t) { return !seen.insert(t.engine_section).second; });
  return teachers;
}

Teacher teacher_of(const PipelineConfig& config, std::optional<std::uint32_t> number) {
  return teachers_of(config).at(number.value_or(0));
}

std::int32_t reference_count(const PipelineConfig& config) {
  const std::vector<Teacher> teachers = teachers_of(config);
  return std::accumulate(
      teachers.begin(), teachers.end(), 0, [](std::int32_t sum, const Teacher& teacher) {
        return sum + teacher.replicas;
      });
}

double busiest_share(const PipelineConfig& config) {
  const std::vector<Teacher> teachers = teachers_of(config);
  const ProblemPlan plan = plan_without_prompts(config);
  const bool one = !plan.teachers || plan.sources.empty();
  std::vector<double> weights(teachers.size(), one ? 1.0 : 0.0);
  for (std::uint32_t k = 0; !one && k < plan.sources.size(); ++k) {
    if (!plan.teachers->of_problems[k].empty())  // Otherwise a column names them.
      weights[plan.teachers->of(k, 0)] += plan.sources[k].weight(0);
  }
  const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
  double share = 0;
  for (std::size_t i = 0; i < teachers.size() && all > 0; ++i) {
    if (teachers[i].replicas > 0)
      share = std::max(share, weights[i] / all / static_cast<double>(teachers[i].replicas));
  }
  return share;
}

void check_teachers(const PipelineConfig& c, Rules& rules) {
  const actors::TaskConfig& task = c.task;
  const bool any = !c.reference.teachers.empty();
  rules.require(any || task.teacher_column.empty(),
                {"task.teacher_column", kTeachers},
                "requires `reference.teachers`, whose names the column has");
  for (const auto& [name, source] : task.sources) {
    const std::string key = fmt::format("task.sources.{}.teacher", name);
    rules.require(any || source.teacher.empty(),
                  {key, kTeachers},
                  "requires `reference.teachers`, one of which it names");
    rules.require(source.teacher.empty() || task.teacher_column.empty(),
                  {key, "task.teacher_column"},
                  "excludes `task.teacher_column`, which names the teacher of each problem; remove "
                  "one of them");
  }
  if (!any)
    return;
  check_each(c, rules);
  if (task.teacher_column.empty()) {
    rules.require(!task.sources.empty(),
                  {kTeachers, "task.teacher_column", "task.sources"},
                  "requires `task.teacher_column`, or the key `teacher` of each source in "
                  "`task.sources`, so that each problem has a teacher");
    if (!task.sources.empty())
      check_sources_of(c, rules);
    return;
  }
  rules.require(task.kind == actors::TaskKind::Jsonl,
                {"task.teacher_column", "task.kind"},
                "requires `task.kind: jsonl`");
  for (const char* const text : {"prompt", "question", "answer", "prompt_token_ids"}) {
    rules.require(
        task.teacher_column != text,
        {"task.teacher_column"},
        fmt::format("expected a column of its own, found `{}`, which has the problem", text));
  }
  rules.require(c.hardware == HardwareKind::Local,
                {"task.teacher_column", "hardware"},
                "requires `hardware: local`: a simulated run reads no problems; name the teacher "
                "of each source in `task.sources`");
}

std::optional<TeacherPlan> teachers_of_sources(const PipelineConfig& config,
                                               const std::vector<ProblemSource>& sources) {
  if (config.reference.teachers.empty())
    return std::nullopt;
  TeacherPlan plan;
  for (const auto& [name, teacher] : config.reference.teachers)
    plan.names.push_back(name);
  for (const ProblemSource& source : sources) {
    std::vector<std::uint8_t>& teachers = plan.of_problems.emplace_back();
    const auto it = config.task.sources.find(source.name);
    if (it == config.task.sources.end())
      continue;
    if (const auto number = number_of(config, it->second.teacher))
      teachers.push_back(*number);
  }
  return plan;
}

std::optional<std::string> unused_teacher(const ProblemPlan& plan) {
  if (!plan.teachers)
    return std::nullopt;
  std::set<std::size_t> used;
  for (const auto& teachers : plan.teachers->of_problems)
    used.insert(teachers.begin(), teachers.end());
  for (std::size_t k = 0; k < plan.teachers->names.size(); ++k) {
    if (!used.contains(k))
      return plan.teachers->names[k];
  }
  return std::nullopt;
}

ProblemPlan plan_without_prompts(const PipelineConfig& config) {
  ProblemPlan plan;
  if (config.reference.teachers.empty())
    return plan;
  plan.seed = config.seed;
  plan.shuffle = config.task.shuffle;
  for (const auto& [name, source] : config.task.sources) {
    plan.sources.push_back(
        {.name = name, .stream = name, .problems = 1, .weights = source.weights_by_step()});
  }
  plan.teachers = teachers_of_sources(config, plan.sources);
  return plan;
}

}  // namespace temper::orchestrator
