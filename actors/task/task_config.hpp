// The `task` section: where prompts come from. verifier_config.hpp has the `verifier` section.
#pragma once

#include "actors/task/template_kind.hpp"
#include "actors/task/verifier_config.hpp"
#include "core/describe.hpp"

#include <string>

namespace temper {

namespace actors {

enum class TaskKind { Addition, Jsonl };
enum class TokenizerKind { Auto, Bytes, Characters };

struct TaskConfig {
  TaskKind kind = TaskKind::Addition;
  std::int32_t digits = 3;
  bool reverse_answer = true;
  double held_out = 0.1;
  std::string path;
  TokenizerKind tokenizer = TokenizerKind::Auto;
  TemplateKind prompt_template = TemplateKind::None;  ///< Key `template`.
};

template <class V>
void describe(V& v, TaskConfig& c) {
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
