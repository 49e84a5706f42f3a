#include "orchestrator/pipeline/verifier_rules.hpp"

#include "actors/border/values.hpp"
#include "core/json_document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <regex>

namespace temper::orchestrator {
namespace {

using actors::VerifierKind;

/// The keys of one verifier: of the section, or of a term of a sum.
class VerifierSection {
 public:
  VerifierSection(std::string path, const actors::SingleVerifier& verifier, Rules& rules)
      : path_(std::move(path)), v_(verifier), rules_(rules) {}

  void check() {
    switch (v_.kind) {
      case VerifierKind::Regex:
        return check_regex();
      case VerifierKind::Command:
        return need(!v_.command.empty() && !v_.command.front().empty(), "command");
      case VerifierKind::Judge:
        return check_judge();
      case VerifierKind::Model:
        return check_model();
      case VerifierKind::Exact:
      case VerifierKind::Numeric:
      case VerifierKind::Python:
      case VerifierKind::Sum:
        break;
    }
  }

  void check_function(const std::string& key, const std::string& name) {
    require(names_python(name), key, fmt::format("must be `module:function`, found \"{}\"", name));
  }
  void need(bool given, const std::string& key) {
    require(given, key, fmt::format("required by `{}.kind: {}`", path_, name_of(v_.kind)));
  }
  void require(bool holds, const std::string& key, const std::string& message) {
    rules_.require(holds, {path_ + "." + key, path_ + ".kind"}, message);
  }

 private:
  void check_regex() {
    need(!v_.pattern.empty(), "pattern");
    constexpr std::string_view kAnswer = "{answer}";
    std::string pattern;  // With an answer substituted, as it will be used.
    std::string_view rest = v_.pattern;
    for (auto at = rest.find(kAnswer); at != std::string_view::npos; at = rest.find(kAnswer)) {
      pattern.append(rest.substr(0, at)).append("0");
      rest.remove_prefix(at + kAnswer.size());
    }
    pattern.append(rest);
    try {
      const std::regex compiled(pattern, std::regex::ECMAScript);
    } catch (const std::regex_error& e) {  // std::regex reports errors only by exceptions.
      require(false, "pattern", fmt::format("not an ECMAScript regular expression: {}", e.what()));
    }
  }

  void check_judge() {
    const actors::JudgeConfig& j = v_.judge;
    need(!j.model.empty(), "judge.model");
    need(!j.prompt.empty(), "judge.prompt");
    require(j.prompt.empty() || j.prompt.find("{response}") != std::string::npos,
            "judge.prompt",
            "must contain `{response}`, which stands for the response to judge");
    check_url(j.url);
    require(is_variable(j.key_variable),
            "judge.key_variable",
            "must be the name of an environment variable that holds the key, such as "
            "OPENAI_API_KEY; do not write the key itself into the file");
    require(j.pattern.empty() != j.field.empty(),
            j.field.empty() ? "judge.pattern" : "judge.field",
            fmt::format("expected either `judge.pattern` or `judge.field`, which say where the "
                        "score is in the reply, found {}",
                        j.pattern.empty() ? "neither" : "both"));
    require(j.lowest < j.highest,
            "judge.lowest",
            fmt::format("must be less than judge.highest ({:g}), found {:g}", j.highest, j.lowest));
    check_request(j);
  }

  void check_request(const actors::JudgeConfig& j) {
    if (j.extra_body.empty())
      return;
    const nlohmann::json body = parse_json(j.extra_body);
    require(body.is_object(),
            "judge.extra_body",
            fmt::format("must be a JSON object in quotes, such as '{{\"reasoning_effort\": "
                        "\"low\"}}', found {}",
                        j.extra_body));
    for (const char* const name : {"model", "temperature", "max_tokens"}) {
      require(!body.contains(name),
              "judge.extra_body",
              fmt::format("has \"{}\"; set `judge.{}` instead", name, name));
    }
    for (const char* const name : {"messages", "stream"}) {
      require(!body.contains(name),
              "judge.extra_body",
              fmt::format("has \"{}\", which Temper sets; remove it", name));
    }
  }

  void check_url(const std::string& url) {
    const std::size_t scheme = url.starts_with("http://") ? 7 : url.starts_with("https://") ? 8 : 0;
    const bool has_host = scheme > 0 && url.size() > scheme && url[scheme] != '/' &&
                          url[scheme] != ':' && url.find_first_of(" \t@") == std::string::npos;
    require(has_host,
            "judge.url",
            fmt::format("must be an address such as http://127.0.0.1:8080/v1, found \"{}\"", url));
  }

  /// Empty: no key.
  static bool is_variable(const std::string& name) {
    return std::ranges::all_of(name,
                               [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; }) &&
           (name.empty() || std::isdigit(static_cast<unsigned char>(name.front())) == 0);
  }

  void check_model() {
    const actors::ClassifierConfig& m = v_.model;
    need(!m.path.empty(), "model.path");
    require(m.prompt_template == actors::TemplateKind::Chat ||
                m.text.find("{response}") != std::string::npos,
            "model.text",
            "must contain `{response}`, which stands for the response to judge");
  }

  const std::string path_;
  const actors::SingleVerifier& v_;
  Rules& rules_;
};

void check_sum(const actors::VerifierConfig& v, Rules& rules) {
  rules.require(
      !v.terms.empty(), {"verifier.terms", "verifier.kind"}, "required by `verifier.kind: sum`");
  for (const auto& [name, term] : v.terms) {
    const std::string path = "verifier.terms." + name;
    rules.require(actors::is_term_name(name) && name.find_first_of(".:") == std::string::npos,
                  {path},
                  fmt::format("the name of a term has 1 to {} letters, digits and `_ -`",
                              actors::kLongestTermName));
    rules.require(term.kind != VerifierKind::Sum,
                  {path + ".kind"},
                  "a term cannot be a sum; add its terms to this one");
    VerifierSection section(path, term, rules);
    section.check();
    if (term.kind == VerifierKind::Python) {
      section.need(!term.function.empty(), "function");
      if (!term.function.empty())
        section.check_function("function", term.function);
    }
  }
}

}  // namespace

bool names_python(std::string_view text) {
  const std::size_t colon = text.find(':');
  return colon != std::string_view::npos && colon > 0 && colon + 1 < text.size();
}

void check_verifier(const PipelineConfig& c, Rules& rules) {
  const actors::VerifierConfig& v = c.verifier;
  if (v.kind == VerifierKind::Sum)
    check_sum(v, rules);
  rules.require(v.kind == VerifierKind::Sum || v.terms.empty(),
                {"verifier.terms", "verifier.kind"},
                fmt::format("requires `verifier.kind: sum`, found `{}`", name_of(v.kind)));
  VerifierSection section("verifier", v, rules);
  section.check();
  if (v.kind == VerifierKind::Python) {
    section.need(!v.function.empty() || !v.functions.empty(), "function");
    if (!v.function.empty())
      section.check_function("function", v.function);
    for (const auto& [name, weight] : v.functions)
      section.check_function("functions", name);
  }
  for (const auto& [name, term] : actors::terms_of(v)) {
    rules.require(!traits_of(term.kind).needs_python || c.hardware == HardwareKind::Local,
                  {section_of(v, name) + ".kind", "hardware"},
                  fmt::format("`{}` requires `hardware: local`", name_of(term.kind)));
  }
}

}  // namespace temper::orchestrator
