// The `verifier` section: how responses are judged, by one verifier or by the weighted sum of
// several terms.
#pragma once

#include "actors/guard/sandbox.hpp"
#include "actors/task/template_kind.hpp"
#include "core/choices.hpp"
#include "core/describe.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace temper {

namespace actors {

enum class VerifierKind { Exact, Numeric, Regex, Command, Python, Judge, Model, Sum };

struct VerifierTraits {
  VerifierKind value;
  std::string_view name;
  std::string_view doc;        ///< For the reference of the configuration.
  bool needs_python = false;   ///< Its rewards come from a worker of the Python package.
  bool has_deadline = false;   ///< `deadline` limits it.
  bool one_at_a_time = false;  ///< Each of its `pool` slots judges one response at a time.
};

inline constexpr auto kVerifierKinds = std::to_array<VerifierTraits>({
    {VerifierKind::Exact, "exact", "the response equals the answer"},
    {VerifierKind::Numeric, "numeric", "its last number equals that of the answer"},
    {VerifierKind::Regex, "regex", "it matches a pattern"},
    {.value = VerifierKind::Command,
     .name = "command",
     .doc = "your program says so",
     .has_deadline = true,
     .one_at_a_time = true},
    {.value = VerifierKind::Python,
     .name = "python",
     .doc = "your function in Python says so",
     .needs_python = true,
     .has_deadline = true},
    {.value = VerifierKind::Judge,
     .name = "judge",
     .doc = "a language model behind an OpenAI-compatible address gives a score",
     .needs_python = true,
     .has_deadline = true,
     .one_at_a_time = true},
    {.value = VerifierKind::Model,
     .name = "model",
     .doc = "a sequence classifier of transformers gives the reward",
     .needs_python = true},
    {VerifierKind::Sum, "sum", "the weighted sum of `terms`"},
});

constexpr const VerifierTraits& traits_of(VerifierKind kind) {
  return row_of(kVerifierKinds, kind);
}

/// A language model that judges responses.
struct JudgeConfig {
  std::string url;
  std::string model;
  std::string key_variable;
  std::string prompt;
  std::string system;
  std::string pattern;
  std::string field;
  double lowest = 0;
  double highest = 1;
  std::optional<double> temperature = 0;  ///< Not sent if empty, and so is the next.
  std::optional<std::int32_t> max_tokens = 1024;
  std::string extra_body;  ///< JSON object.
  std::int32_t attempts = 4;
  std::int32_t cache = 100'000;
  double input_price = 0;
  double output_price = 0;
};

/// A sequence classifier that judges responses.
struct ClassifierConfig {
  std::string path;
  std::string label;
  std::string text = "{prompt}{response}";
  TemplateKind prompt_template = TemplateKind::None;  ///< Key `template`.
  std::string device;
  std::int32_t batch = 32;
};

/// One verifier that is no sum.
struct SingleVerifier {
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
  JudgeConfig judge;
  ClassifierConfig model;
};

struct VerifierTerm : SingleVerifier {
  double weight = 1;
};

struct VerifierConfig : SingleVerifier {
  std::map<std::string, double> functions;
  std::map<std::string, VerifierTerm> terms;
};

/// The terms by name: `terms` of a sum, a term per function of `functions`, or the one verifier
/// under the name of its kind.
std::map<std::string, VerifierTerm> terms_of(const VerifierConfig& config);

/// The section of a term of terms_of(), for messages: `verifier` or `verifier.terms.NAME`.
std::string section_of(const VerifierConfig& config, const std::string& term);

/// True if a worker of the Python package has to judge.
bool needs_python(const VerifierConfig& config);

namespace detail {

/// Keys about each request.
void describe_requests(auto& v, JudgeConfig& c) {
  v.field(10,
          "temperature",
          c.temperature,
          {.doc = "Sampling temperature. Null: the request has none, and the server uses its own.",
           .min = 0.0});
  v.field(11,
          "max_tokens",
          c.max_tokens,
          {.doc = "Longest reply, in tokens. Null: the request has no such limit.", .min = 1});
  v.field(12,
          "attempts",
          c.attempts,
          {.doc = "Requests for one response within `deadline`, if the first ones fail: no "
                  "connection, status 408, 429 or 5xx, or a reply without a valid score.",
           .min = 1,
           .max = 100});
  v.field(
      13,
      "cache",
      c.cache,
      {.doc = "Number of scores that are kept, so that equal questions are asked once.", .min = 0});
  v.field(14,
          "input_price",
          c.input_price,
          {.doc = "Price of a million input tokens, for `judge/cost`.", .min = 0.0});
  v.field(
      15, "output_price", c.output_price, {.doc = "Price of a million output tokens.", .min = 0.0});
  v.field(
      16,
      "extra_body",
      c.extra_body,
      {.doc = "JSON object with further fields of a request, as `extra_body` of OpenAI's client.",
       .example = R"('{"reasoning_effort": "low", "max_completion_tokens": 4096}')"});
}

}  // namespace detail

void describe(auto& v, JudgeConfig& c) {
  v.field(1,
          "url",
          c.url,
          {.doc = "Base address of the API, as OpenAI clients take it; requests go to "
                  "`URL/chat/completions`.",
           .example = "http://127.0.0.1:8080/v1"});
  v.field(2, "model", c.model, {.doc = "Model name in requests."});
  v.field(3,
          "key_variable",
          c.key_variable,
          {.doc = "Name of the environment variable with the API key; empty: none is sent. The key "
                  "is written nowhere.",
           .example = "OPENAI_API_KEY"});
  v.field(4,
          "prompt",
          c.prompt,
          {.doc = "The question. `{prompt}`, `{response}`, `{answer}` and the name of any column "
                  "of the row in braces are replaced by their text; other braces stay.",
           .example = "\"Is {response} the answer to {prompt}? Reply with 0 or 1.\""});
  v.field(5, "system", c.system, {.doc = "The system message; empty: none."});
  v.field(6,
          "pattern",
          c.pattern,
          {.doc = "Regular expression of Python; its first group, or the whole of its last match "
                  "in the reply, is the score. Either this or `field`.",
           .example = "'score: (\\d+)'"});
  v.field(7, "field", c.field, {.doc = "Key of the score in the last JSON object of the reply."});
  v.field(8, "lowest", c.lowest, {.doc = "Score that becomes reward 0."});
  v.field(9,
          "highest",
          c.highest,
          {.doc = "Score that becomes reward 1; a reply with a score outside the range is "
                  "invalid."});
  detail::describe_requests(v, c);
}

void describe(auto& v, ClassifierConfig& c) {
  v.field(1,
          "path",
          c.path,
          {.doc = "Folder of a model that AutoModelForSequenceClassification loads."});
  v.field(2,
          "label",
          c.label,
          {.doc = "Class whose probability is the reward. Empty: the model has one output, which "
                  "is the reward."});
  v.field(
      3, "text", c.text, {.doc = "Input of the classifier; names in braces as in `judge.prompt`."});
  v.field(4,
          "template",
          c.prompt_template,
          {.doc = "`none`: the input is `text`. `chat`: it is the conversation, the row's "
                  "`messages` or the prompt and then the response, rendered by the chat template "
                  "of the folder."});
  v.field(5,
          "device",
          c.device,
          {.doc = "`cpu`, `cuda` or `cuda:1`; empty: a GPU if there is one.", .example = "cuda:1"});
  v.field(6, "batch", c.batch, {.doc = "Responses of one forward pass.", .min = 1});
}

/// Keys of `kind: command`, and of the processes that other kinds use.
void describe_processes(auto& v, SingleVerifier& c) {
  v.field(4,
          "command",
          c.command,
          {.doc = "command: executable and arguments; reads and writes one JSON line per response.",
           .example = "[python3, verify.py]"});
  v.field(5,
          "pool",
          c.pool,
          {.doc = "command, python: number of processes. judge: requests at the same time.",
           .min = 1,
           .max = 256});
  v.field(6,
          "deadline",
          c.deadline,
          {.doc = "command: time limit for one response; after it the process is replaced and the "
                  "response counts as failed. python: the same for one call with its responses. "
                  "judge: time limit for one response with all attempts.",
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
}

void describe(auto& v, SingleVerifier& c) {
  static const std::string kinds = doc_of_rows("How responses are judged. ", kVerifierKinds);
  v.field(1, "kind", c.kind, {.doc = kinds});
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
  describe_processes(v, c);
  v.field(11,
          "function",
          c.function,
          {.doc = "python: module and function, called like a reward function of TRL: f(prompts, "
                  "completions, completion_ids, **columns) returns a list of numbers.",
           .example = "my_package.rewards:right_answer"});
  v.field(13, "judge", c.judge, {.doc = "judge: the language model and its question."});
  v.field(14, "model", c.model, {.doc = "model: the classifier."});
}

void describe(auto& v, VerifierTerm& c) {
  describe(v, static_cast<SingleVerifier&>(c));
  v.field(15,
          "weight",
          c.weight,
          {.doc = "Factor of its reward in the sum; 0: the reward is shown, but not counted.",
           .min = -1e6,
           .max = 1e6});
}

void describe(auto& v, VerifierConfig& c) {
  describe(v, static_cast<SingleVerifier&>(c));
  v.field(
      12,
      "functions",
      c.functions,
      {.doc = "python: several functions, each with the weight of its reward in the sum; short "
              "for `kind: sum`.",
       .example = "{\"my_package.rewards:right_answer\": 1, \"my_package.rewards:brief\": 0.1}"});
  v.field(16,
          "terms",
          c.terms,
          {.doc = "sum: the verifiers by name, each with the keys of this section except "
                  "`functions` and `terms`, and `weight`.",
           .example = "{right: {kind: numeric}, brief: {kind: python, function: "
                      "\"my_rewards:brief\", weight: 0.1}}"});
}

}  // namespace actors

template <>
struct EnumNames<actors::VerifierKind> {
  static constexpr auto value = names_of_rows(actors::kVerifierKinds);
};

}  // namespace temper
