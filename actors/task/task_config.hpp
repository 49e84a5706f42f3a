// The `task` and `verifier` sections: where prompts come from and how responses are judged.
#pragma once

#include "actors/guard/sandbox.hpp"
#include "core/describe.hpp"

#include <map>
#include <string>
#include <vector>

namespace temper {

namespace actors {

enum class TaskKind { Addition, Jsonl };
enum class TokenizerKind { Auto, Bytes, Characters };
enum class TemplateKind { None, Chat };
enum class VerifierKind { Exact, Numeric, Regex, Command, Python };

struct TaskConfig {
  TaskKind kind = TaskKind::Addition;
  std::int32_t digits = 3;
  bool reverse_answer = true;
  double held_out = 0.1;
  std::string path;
  TokenizerKind tokenizer = TokenizerKind::Auto;
  TemplateKind prompt_template = TemplateKind::None;  ///< Key `template`.
};

struct VerifierConfig {
  VerifierKind kind = VerifierKind::Exact;
  double tolerance = 1e-6;
  std::string pattern;
  std::vector<std::string> command;
  std::int32_t pool = 2;
  Duration deadline = std::chrono::seconds(5);
  SandboxKind sandbox = SandboxKind::Limits;
  Bytes memory = Sandbox{}.memory;
  std::vector<std::string> environment;
  std::vector<std::string> hidden;
  std::string function;
  std::map<std::string, double> functions;
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

/// Keys of `kind: python`.
template <class V>
void describe_functions(V& v, VerifierConfig& c) {
  v.field(11,
          "function",
          c.function,
          {.doc = "python: module and function, called like a reward function of TRL: f(prompts, "
                  "completions, completion_ids, **columns) returns a list of numbers.",
           .example = "my_package.rewards:right_answer"});
  v.field(
      12,
      "functions",
      c.functions,
      {.doc = "python: several functions, each with the weight of its reward in the sum.",
       .example = "{\"my_package.rewards:right_answer\": 1, \"my_package.rewards:brief\": 0.1}"});
}

template <class V>
void describe(V& v, VerifierConfig& c) {
  v.field(1, "kind", c.kind, {.doc = "How responses are judged."});
  v.field(2,
          "tolerance",
          c.tolerance,
          {.doc = "numeric: largest accepted difference from the answer.", .min = 0.0});
  v.field(3,
          "pattern",
          c.pattern,
          {.doc = "regex: ECMAScript pattern that must match in the response; `{answer}` is "
                  "replaced by the "
                  "escaped answer."});
  v.field(4,
          "command",
          c.command,
          {.doc = "command: executable and arguments; reads and writes one JSON line per response.",
           .example = "[python3, verify.py]"});
  v.field(
      5, "pool", c.pool, {.doc = "command, python: number of processes.", .min = 1, .max = 256});
  v.field(6,
          "deadline",
          c.deadline,
          {.doc = "command: time limit for one response; after it the process is replaced and the "
                  "response counts as failed. python: the same for one call with its responses.",
           .min = std::chrono::milliseconds(1)});
  v.field(
      7,
      "sandbox",
      c.sandbox,
      {.doc = "command: restrictions on the program. `none`: no restrictions. `limits`: bounded "
              "memory, files and descriptors, no new privileges. `namespaces`: `limits`, and no "
              "network, no other processes visible, read-only file systems, an empty private "
              "/tmp."});
  v.field(
      8,
      "memory",
      c.memory,
      {.doc =
           "command: memory limit of the program and everything it starts, unless `sandbox: none`.",
       .min = Bytes(Bytes::rep{1} << 20)});
  v.field(9,
          "environment",
          c.environment,
          {.doc = "command: environment variables passed to the program in addition to PATH, HOME, "
                  "USER, LANG, LC_ALL, LC_CTYPE, TZ, TMPDIR and OMP_NUM_THREADS.",
           .example = "[PYTHONPATH]"});
  v.field(10,
          "hidden",
          c.hidden,
          {.doc = "command, `sandbox: namespaces`: folders that appear empty to the program.",
           .example = "[/home/me/.ssh]"});
  describe_functions(v, c);
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
template <>
struct EnumNames<actors::TemplateKind> {
  static constexpr std::array<std::pair<actors::TemplateKind, std::string_view>, 2> value{
      {{actors::TemplateKind::None, "none"}, {actors::TemplateKind::Chat, "chat"}}};
};
template <>
struct EnumNames<actors::VerifierKind> {
  static constexpr std::array<std::pair<actors::VerifierKind, std::string_view>, 5> value{
      {{actors::VerifierKind::Exact, "exact"},
       {actors::VerifierKind::Numeric, "numeric"},
       {actors::VerifierKind::Regex, "regex"},
       {actors::VerifierKind::Command, "command"},
       {actors::VerifierKind::Python, "python"}}};
};

}  // namespace temper
