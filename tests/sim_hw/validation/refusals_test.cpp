// Every kind, asked with the parameters of the shipped measurements and one of them replaced by a
// value from the edges: it answers with finite numbers or refuses and names what is wrong, and
// does so quickly.
#include "sim_hw/published/measurement_file.hpp"
#include "sim_hw/validation/report.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <string>

namespace temper::sim_hw {
namespace {

/// Up to three rows of each kind and set of parameter names.
std::vector<Row> examples(Catalog& catalog) {
  std::vector<Row> out;
  std::map<std::string, int> seen;
  for (const char* file : {"h200.csv",
                           "ascend.csv",
                           "nvidia.csv",
                           "megatron.csv",
                           "simgrid_flat.csv",
                           "simgrid_contended.csv"}) {
    const auto rows = read_any(catalog.configs() / "validation" / file, catalog);
    EXPECT_TRUE(rows) << rows.error().context;
    for (const Row& row : rows->rows) {
      std::string key = row.kind;
      const Params params = *Params::parse(row.params);
      for (const auto& [name, value] : params.values())
        key += " " + name;
      if (seen[key]++ < 3)
        out.push_back(row);
    }
  }
  return out;
}

const std::vector<std::string> kEdges{"0",
                                      "-1",
                                      "1",
                                      "3",
                                      "0.5",
                                      "4096",
                                      "1e9",
                                      "1e15",
                                      "9223372036854775807",
                                      "-9223372036854775808",
                                      "1e300",
                                      "1e-300",
                                      "nan",
                                      "inf",
                                      "",
                                      "full"};

void expect_answer_or_refusal(Catalog& catalog, const Row& row, const Params& params) {
  const std::string asked =
      fmt::format("{} {} {} {}", row.hardware, row.cards, row.kind, params.to_text());
  const auto answer = cost_of({catalog, row.folder}, {row.hardware, row.cards, row.kind, params});
  if (!answer) {
    EXPECT_FALSE(answer.error().context.empty()) << asked;
    return;
  }
  for (const Metric& metric : answer->metrics) {
    EXPECT_TRUE(std::isfinite(metric.value) && metric.value >= 0)
        << asked << ": " << metric.name << " = " << metric.value;
    for (const Term& term : metric.terms)
      EXPECT_TRUE(std::isfinite(term.value)) << asked << ": " << term.name;
  }
}

TEST(Predict, AnswersOrRefusesAtTheEdgesOfEveryParameter) {
  Catalog catalog = Catalog::shipped();
  for (const Row& row : examples(catalog)) {
    const Params params = *Params::parse(row.params);
    for (const auto& [name, value] : params.values()) {
      if (name == "lengths")
        continue;
      for (const std::string& edge : kEdges) {
        std::map<std::string, std::string> changed = params.values();
        changed[name] = edge;
        expect_answer_or_refusal(catalog, row, Params(std::move(changed)));
      }
      std::map<std::string, std::string> without = params.values();
      without.erase(name);
      expect_answer_or_refusal(catalog, row, Params(std::move(without)));
    }
    for (const std::int64_t cards : {INT64_C(0), INT64_C(-1), INT64_C(7), INT64_C(100000)}) {
      Row moved = row;
      moved.cards = cards;
      expect_answer_or_refusal(catalog, moved, params);
    }
  }
}

}  // namespace
}  // namespace temper::sim_hw
