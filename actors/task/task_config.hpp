// The `task` section: where prompts come from. verifier_config.hpp has the `verifier` section.
#pragma once

#include "actors/task/template_kind.hpp"
#include "actors/task/verifier_config.hpp"
#include "core/describe.hpp"

#include <map>
#include <optional>
#include <string>

namespace temper {

namespace actors {

enum class TaskKind { Addition, Jsonl };
enum class TokenizerKind { Auto, Bytes, Characters };

/// One of several sources of problems.
struct TaskSource {
  std::string path;
  std::optional<std::int32_t> digits;
  double weight = 1;
  std::map<std::uint64_t, double> schedule;
  std::string teacher;

  std::map<std::uint64_t, double> weights_by_step() const {
    return schedule.empty() ? std::map<std::uint64_t, double>{{0, weight}} : schedule;
  }
};

/// Which problems are left out for some epochs, by the pass rate of their last group.
struct SetAside {
  std::optional<double> easy;
  std::optional<double> hopeless;
  std::int32_t epochs = 1;
  bool is_on() const { return easy || hopeless; }
};

struct TaskConfig {
  TaskKind kind = TaskKind::Addition;
  std::int32_t digits = 3;
  bool reverse_answer = true;
  double held_out = 0.1;
  std::string path;
  TokenizerKind tokenizer = TokenizerKind::Auto;
  TemplateKind prompt_template = TemplateKind::None;  ///< Key `template`.
  std::map<std::string, TaskSource> sources;          ///< Empty: the task is its only source.
  bool shuffle = true;
  SetAside set_aside;
  std::string teacher_column;
};

void describe(auto& v, TaskSource& c) {
  v.field(1,
          "path",
          c.path,
          {.doc = "jsonl: path of the file, in the format of `task.path`.",
           .example = "data/math.jsonl"});
  v.field(2,
          "digits",
          c.digits,
          {.doc = "addition: digits of each summand, from 1 to 9. Null: `task.digits`."});
  v.field(3,
          "weight",
          c.weight,
          {.doc = "Groups of this source in proportion to those of the others.",
           .min = 0.0,
           .max = 1e6});
  v.field(4,
          "schedule",
          c.schedule,
          {.doc = "Weights by step in place of `weight`: linear between two steps, constant before "
                  "the first and after the last.",
           .example = "{0: 3, 200: 1}"});
  v.field(5,
          "teacher",
          c.teacher,
          {.doc = "Key of `reference.teachers`: who scores the responses to its problems.",
           .example = "math"});
}

void describe(auto& v, SetAside& c) {
  v.field(1,
          "easy",
          c.easy,
          {.doc = "Set a problem aside if at least this share of the responses of its last group "
                  "passed (`evaluation.pass`). From 0 to 1. Null: never."});
  v.field(2,
          "hopeless",
          c.hopeless,
          {.doc = "Set a problem aside if at most this share of the responses of its last group "
                  "passed. From 0 to 1. Null: never."});
  v.field(3,
          "for_epochs",
          c.epochs,
          {.doc = "Epochs of its source for which a problem is left out; then it is tried again.",
           .min = 1,
           .max = 1 << 20});
}

void describe(auto& v, TaskConfig& c) {
  v.field(1, "kind", c.kind, {.doc = "`addition` (built in) or `jsonl` (a file of prompts)."});
  v.field(2, "digits", c.digits, {.doc = "addition: digits of each summand.", .min = 1, .max = 9});
  v.field(3,
          "reverse_answer",
          c.reverse_answer,
          {.doc = "addition: write the answer least significant digit first, which a small model "
                  "learns much faster."});
  v.field(4,
          "held_out",
          c.held_out,
          {.doc = "Share of the problems kept out of training, for `evaluation`.",
           .min = 0.0,
           .max = 0.9});
  v.field(5,
          "path",
          c.path,
          {.doc = "jsonl: path of the file; each line has `prompt` and `answer`, or `question` and "
                  "`answer`.",
           .example = "data/train.jsonl"});
  v.field(6,
          "tokenizer",
          c.tokenizer,
          {.doc = "`auto` means `characters` for addition and `bytes` for jsonl."});
  v.field(
      7,
      "template",
      c.prompt_template,
      {.doc = "jsonl: `none`: prompts are texts that the engine gets unchanged. `chat`: prompts "
              "are texts or messages, rendered with the chat template of `model.path` (needs "
              "Python with jinja2)."});
  v.field(8,
          "sources",
          c.sources,
          {.doc = "Several sources of problems by name, each with a weight. The column `source` of "
                  "a problem has the name. Empty: one source, by the keys above."});
  v.field(9,
          "shuffle",
          c.shuffle,
          {.doc = "Visit the problems of a source in another order in every epoch. False: in the "
                  "order of the file."});
  v.field(10, "set_aside", c.set_aside, {.doc = "Problems that are left out for some epochs."});
  v.field(11,
          "teacher_column",
          c.teacher_column,
          {.doc = "jsonl: column that has the key of `reference.teachers` who scores the responses "
                  "to the problem. Empty: `teacher` of each source, or one teacher.",
           .example = "teacher"});
}

}  // namespace actors

template <>
struct EnumNames<actors::TaskKind> {
  static constexpr std::array<std::pair<actors::TaskKind, std::string_view>, 2> value{
      {{actors::TaskKind::Addition, "addition"}, {actors::TaskKind::Jsonl, "jsonl"}}};
};
template <>
struct EnumNames<actors::TokenizerKind> {
  static constexpr std::array<std::pair<actors::TokenizerKind, std::string_view>, 3> value{
      {{actors::TokenizerKind::Auto, "auto"},
       {actors::TokenizerKind::Bytes, "bytes"},
       {actors::TokenizerKind::Characters, "characters"}}};
};

}  // namespace temper
