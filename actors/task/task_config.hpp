// Where prompts come from and how a response is judged: the `task` and `verifier` sections.
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
enum class VerifierKind { Exact, Numeric, Regex, Command, Python };

struct TaskConfig {
  TaskKind kind = TaskKind::Addition;
  std::int32_t digits = 3;
  bool reverse_answer = true;
  double held_out = 0.1;
  std::string path;
  TokenizerKind tokenizer = TokenizerKind::Auto;
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
          {.doc = "addition: the answer is written least significant digit first, which a small "
                  "model learns far sooner."});
  v.field(4,
          "held_out",
          c.held_out,
          {.doc = "Share of the problems kept out of training, for `evaluation`.",
           .min = 0.0,
           .max = 0.9});
  v.field(
      5,
      "path",
      c.path,
      {.doc = "jsonl: the file; each line has `prompt` and `answer`, or `question` and `answer`.",
       .example = "data/train.jsonl"});
  v.field(6,
          "tokenizer",
          c.tokenizer,
          {.doc = "`auto` takes `characters` for addition and `bytes` for jsonl."});
}

template <class V>
void describe(V& v, VerifierConfig& c) {
  v.field(1, "kind", c.kind, {.doc = "How a response earns its reward."});
  v.field(2,
          "tolerance",
          c.tolerance,
          {.doc = "numeric: accepted distance from the answer.", .min = 0.0});
  v.field(3,
          "pattern",
          c.pattern,
          {.doc = "regex: ECMAScript pattern the response must contain; `{answer}` stands for the "
                  "escaped answer."});
  v.field(4,
          "command",
          c.command,
          {.doc = "command: executable and arguments; one JSON line in and one out per response.",
           .example = "[python3, verify.py]"});
  v.field(
      5, "pool", c.pool, {.doc = "command, python: processes kept running.", .min = 1, .max = 256});
  v.field(6,
          "deadline",
          c.deadline,
          {.doc = "command: time for one response; past it the process is replaced and the sample "
                  "counts as failed. python: the same for one call, with its responses.",
           .min = std::chrono::milliseconds(1)});
  v.field(7,
          "sandbox",
          c.sandbox,
          {.doc = "command: what the program may do. `none`: what its user may. `limits`: bounded "
                  "memory, files and descriptors, no new privileges. `namespaces`: besides, no "
                  "network, no other process in sight, file systems read-only, /tmp empty and its "
                  "own."});
  v.field(8,
          "memory",
          c.memory,
          {.doc = "command: most memory of the program and all it starts, unless `sandbox: none`.",
           .min = Bytes(Bytes::rep{1} << 20)});
  v.field(9,
          "environment",
          c.environment,
          {.doc = "command: variables that the program is given of ours, beside PATH, HOME, USER, "
                  "LANG, LC_ALL, LC_CTYPE, TZ, TMPDIR and OMP_NUM_THREADS. No other is.",
           .example = "[PYTHONPATH]"});
  v.field(10,
          "hidden",
          c.hidden,
          {.doc = "command, `sandbox: namespaces`: folders that look empty to the program.",
           .example = "[/home/me/.ssh]"});
  v.field(11,
          "function",
          c.function,
          {.doc = "python: module and function, called as TRL calls a reward function: f(prompts, "
                  "completions, completion_ids, **columns) gives a list of numbers.",
           .example = "my_package.rewards:right_answer"});
  v.field(
      12,
      "functions",
      c.functions,
      {.doc = "python: several functions, each with the weight of its reward in the sum.",
       .example = "{\"my_package.rewards:right_answer\": 1, \"my_package.rewards:brief\": 0.1}"});
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
struct EnumNames<actors::VerifierKind> {
  static constexpr std::array<std::pair<actors::VerifierKind, std::string_view>, 5> value{
      {{actors::VerifierKind::Exact, "exact"},
       {actors::VerifierKind::Numeric, "numeric"},
       {actors::VerifierKind::Regex, "regex"},
       {actors::VerifierKind::Command, "command"},
       {actors::VerifierKind::Python, "python"}}};
};

}  // namespace temper
