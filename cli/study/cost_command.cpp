#include "cli/study/cost_command.hpp"

#include "cli/command/exit_code.hpp"
#include "core/json.hpp"
#include "core/text/numbers.hpp"
#include "core/text/table.hpp"
#include "sim_hw/queries/queries.hpp"
#include "sim_hw/request/readable.hpp"
#include "sim_hw/validation/unmeasured.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>

namespace temper::cli {
namespace {

using sim_hw::Metric;
using sim_hw::Request;
using sim_hw::Term;

double share(const Term& term, const Metric& metric) {
  return metric.value == 0 ? 0 : term.value / metric.value;
}

struct TermJson {
  const Metric& metric;
  const Term& term;
};
void describe(auto& v, TermJson& t) {
  v.field(1, "name", t.term.name);
  v.field(2, "count", t.term.count);
  v.field(3, "value", t.term.value);
  v.field(4, "share", share(t.term, t.metric));
  v.field(5, "equation", t.term.equation);
}

struct MetricJson {
  const Metric& metric;
};
void describe(auto& v, MetricJson& m) {
  v.field(1, "name", m.metric.name);
  v.field(2, "unit", m.metric.unit);
  v.field(3, "value", m.metric.value);
  std::vector<TermJson> terms;
  for (const Term& term : m.metric.terms)
    terms.push_back({m.metric, term});
  v.field(4, "terms", terms);
}

/// The result with the constants that were measured on another hardware.
struct TogetherJson {
  std::string hardware;
  double value = 0;
};
void describe(auto& v, TogetherJson& t) {
  v.field(1, "hardware", t.hardware);
  v.field(2, "value", t.value);
}

struct CostJson {
  const Request& request;
  const sim_hw::Cost& prediction;
  const sim_hw::UnmeasuredConstants& unmeasured;
};
void describe(auto& v, CostJson& c) {
  v.field(1, "kind", c.request.kind);
  v.field(2, "hardware", c.request.hardware);
  v.field(3, "cards", c.request.cards);
  v.field(4, "params", c.request.params.to_text());
  std::vector<MetricJson> metrics;
  for (const Metric& metric : c.prediction.metrics)
    metrics.push_back({metric});
  v.field(5, "metrics", metrics);
  v.field(6, "unmeasured", c.unmeasured.constants);
  std::vector<TogetherJson> together;
  for (const auto& [hardware, value] : c.unmeasured.together)
    together.push_back({hardware, value});
  v.field(7, "as_elsewhere", together);
}

struct KindJson {
  std::string kind;
  std::string doc;
  std::string parameters;
};
void describe(auto& v, KindJson& k) {
  v.field(1, "kind", k.kind);
  v.field(2, "doc", k.doc);
  v.field(3, "parameters", k.parameters);
}

/// The value if `hardware=` is the only assignment; else empty.
std::string hardware_alone(const std::vector<std::string>& assignments) {
  constexpr std::string_view kKey = "hardware=";
  return assignments.size() == 1 && assignments.front().starts_with(kKey)
             ? assignments.front().substr(kKey.size())
             : std::string();
}

Result<Request> to_request(const std::vector<std::string>& assignments) {
  TEMPER_TRY(const sim_hw::Params all, sim_hw::Params::from_words(assignments));
  Request request;
  TEMPER_TRY(request.kind, all.text("kind"));
  TEMPER_TRY(request.hardware, all.text("hardware"));
  TEMPER_TRY(request.cards, all.integer("cards", 1));
  if (request.cards < 1)
    return invalid_input(fmt::format("cards: expected at least 1, found {}", request.cards));
  std::map<std::string, std::string> values = all.values();
  for (const char* key : {"kind", "hardware", "cards"})
    values.erase(key);
  request.params = sim_hw::Params(std::move(values));
  return request;
}

/// Prints an error and the command that lists the valid parameters.
int refuse(const Error& error, std::string_view kind, std::ostream& err) {
  const int code = fail(error, err);
  if (error.code == ErrorCode::OutOfMemory)
    return kBadInput;
  for (const sim_hw::Kind& known : sim_hw::kinds()) {
    if (known.name == kind) {
      err << fmt::format("parameters of {}: {}\n", kind, known.parameters);
      return code;
    }
  }
  err << "kinds and their parameters: temper cost --list\n";
  return code;
}

int list_kinds(bool json, std::ostream& out) {
  std::vector<KindJson> kinds;
  for (const sim_hw::Kind& kind : sim_hw::kinds()) {
    kinds.push_back({std::string(kind.name), std::string(kind.doc), std::string(kind.parameters)});
  }
  if (json) {
    out << to_json(kinds, JsonStyle::Pretty) << '\n';
    return 0;
  }
  for (const KindJson& kind : kinds)
    out << fmt::format("{:<24}{}\n{:<24}{}\n", kind.kind, kind.doc, "", kind.parameters);
  return 0;
}

/// Explains `|a, b|4` in equations (smooth_max4() of sim_hw/operators).
constexpr std::string_view kSmoothMaximum =
    "\n  |a, b|4 = (a^4 + b^4)^(1/4): the longer of two overlapping times, plus up to 19 % if "
    "they are equal\n";

bool has_smooth_maximum(const sim_hw::Cost& cost) {
  return std::ranges::any_of(cost.metrics, [](const Metric& metric) {
    return std::ranges::any_of(metric.terms, [](const Term& term) {
      return term.equation.find("|4") != std::string::npos;
    });
  });
}

void print_terms(const Metric& metric, std::ostream& out) {
  std::size_t width = 4;
  for (const Term& term : metric.terms)
    width = std::max(width, term.name.size());
  for (const Term& term : metric.terms) {
    out << fmt::format("  {:<{}}  {:>8.6g} x  {:>12}  {:>7}   {}\n",
                       term.name,
                       width,
                       term.count,
                       sim_hw::readable(term.value, metric.unit),
                       percent_text(share(term, metric), 1),
                       term.equation);
  }
}

/// The constants that were not measured on the hardware, and how much they affect the result.
void print_unmeasured(const sim_hw::UnmeasuredConstants& unmeasured,
                      const Metric& metric,
                      std::ostream& out) {
  if (unmeasured.constants.empty())
    return;
  std::vector<std::vector<std::string>> rows{
      {fmt::format("not measured on {}", unmeasured.hardware),
       "used",
       "measured elsewhere",
       metric.name}};
  const auto number = [](double value) { return fmt::format("{:.3g}", value); };
  for (const sim_hw::ConstantEffect& d : unmeasured.constants) {
    rows.push_back(
        {d.name,
         d.used ? number(*d.used) : "",
         d.low ? number(*d.low) + " to " + number(*d.high) : "",
         sim_hw::readable(d.least, metric.unit) + " to " + sim_hw::readable(d.most, metric.unit)});
  }
  out << '\n' << bar_table(rows);
  for (const auto& [hardware, value] : unmeasured.together) {
    out << fmt::format("with all of these constants as on {}: {}\n",
                       hardware,
                       sim_hw::readable(value, metric.unit));
  }
}

/// Lists the unmeasured constants whose number appears in the notes below predictions.
Status list_unmeasured(const std::string& name, std::ostream& out) {
  sim_hw::Catalog catalog = sim_hw::Catalog::shipped();
  TEMPER_TRY(const auto hardware, catalog.hardware(name));
  const auto constants = sim_hw::unmeasured_constants(*hardware);
  out << fmt::format("{} constant{} not measured on {}{}{}\n",
                     constants.size(),
                     constants.size() == 1 ? "" : "s",
                     hardware->name,
                     constants.empty() ? "" : ": ",
                     sim_hw::constant_names(constants));
  return {};
}

}  // namespace

int run_cost(const CostOptions& options, std::ostream& out, std::ostream& err) {
  if (options.list)
    return list_kinds(options.json, out);
  if (const std::string hardware = hardware_alone(options.assignments);
      options.explain && !hardware.empty()) {
    const Status listed = list_unmeasured(hardware, out);
    return listed ? 0 : refuse(listed.error(), "", err);
  }
  const auto request = to_request(options.assignments);
  if (!request)
    return refuse(request.error(), "", err);
  sim_hw::Catalog catalog = sim_hw::Catalog::shipped();
  const auto prediction =
      sim_hw::cost_of({catalog, std::filesystem::path(".")}, *request, sim_hw::kinds());
  if (!prediction)
    return refuse(prediction.error(), request->kind, err);
  const sim_hw::UnmeasuredConstants unmeasured =
      sim_hw::analyze_unmeasured({catalog, "."}, *request, *prediction);
  if (options.json) {
    out << to_json(CostJson{*request, *prediction, unmeasured}, JsonStyle::Pretty) << '\n';
    return 0;
  }
  std::size_t width = 0;
  for (const Metric& metric : prediction->metrics)
    width = std::max(width, metric.name.size());
  for (const Metric& metric : prediction->metrics) {
    out << fmt::format(
        "{:<{}}  {}\n", metric.name, width, sim_hw::readable(metric.value, metric.unit));
    if (options.explain)
      print_terms(metric, out);
  }
  if (options.explain && has_smooth_maximum(*prediction))
    out << kSmoothMaximum;
  if (!prediction->metrics.empty())
    print_unmeasured(unmeasured, prediction->metrics.front(), out);
  return 0;
}

Handler cost_command(Flags& flags) {
  const auto options = std::make_shared<CostOptions>();
  flags.arguments("assignments",
                  options->assignments,
                  "kind=KIND, hardware=NAME, cards=N and parameters of the kind",
                  Need::Optional);
  flags.flag("--explain",
             options->explain,
             "Print each term with its equation; with only hardware=NAME: list its unmeasured "
             "constants");
  flags.flag("--list", options->list, "List the kinds and their parameters");
  flags.json(options->json);
  return [options] { return run_cost(*options, std::cout, std::cerr); };
}

}  // namespace temper::cli
