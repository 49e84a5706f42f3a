// Converts publications to measurement rows. A file of publications is CSV with the columns
//   id,area,system,hardware,cards,model,conditions,metric,unit,value,source
// whose conditions are text such as "op=allGather;ranks=16 dies;message=1.3MB" or "TP8 PP8
// DP1;interleave=3;batch=64". A publication whose conditions suffice for a kind becomes a Row;
// every other one is listed with its reason. The only assumptions are:
//   - KB and MB of communication reports are KiB and MiB, as their workloads confirm
//     (65,536 tokens x 5120 x 2 B / 16 ranks = "40.0MB");
//   - nccl-tests sizes are totals: an all-gather contributes size / ranks per rank;
//   - "same parallelism" of Megatron's memory figures is that of arXiv 2205.05198, table 3;
//   - the two sides of a mapping between layouts without a placement are on different cards;
//   - rollout rows that state dies and a batch per DP have the layout that the same recipe
//     (cann-recipes-train, section 1.4) states: TP2, DP = dies / 2, EP = dies.
// Values only; no threads.
#pragma once

#include "core/text/csv.hpp"
#include "sim_hw/catalog/catalog.hpp"
#include "sim_hw/measurements/measurement.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace temper::sim_hw {

struct PublishedRow {
  std::string id, area, system, hardware, cards, model, conditions, metric, unit, source;
  double value = 0;
};

struct UnusedRow {
  std::string id;
  std::string what;  ///< "rl_iteration step_time"
  std::string reason;
  std::string table{};  ///< Table of publications: "published_3".
};

struct Conversion {
  std::vector<Row> rows;
  std::vector<UnusedRow> unused;
};

bool is_publication_table(const CsvTable& table);
/// `catalog` lists the known hardware and models. Errors name the file and line.
Result<Conversion> convert_publications(const CsvTable& table,
                                        std::string_view file,
                                        Catalog& catalog);

/// Parser of the `conditions` column.
class Conditions {
 public:
  explicit Conditions(std::string_view text);
  const std::string& text() const { return text_; }
  bool mentions(std::string_view words) const { return text_.find(words) != std::string::npos; }
  /// The value of "key=value"; empty if absent.
  std::string value(std::string_view key) const;
  /// The leading number of the value of "key=value".
  std::optional<double> number(std::string_view key) const;
  /// The integer right after `label` if no letter precedes it: 8 of "TP8", "DP1TP8EP4".
  static std::optional<std::int64_t> after(std::string_view text, std::string_view label);
  std::optional<std::int64_t> after(std::string_view label) const { return after(text_, label); }

 private:
  std::string text_;
  std::map<std::string, std::string, std::less<>> values_;
};

/// "1.3MB", "465KB", "1 GB", "512 B": KB and MB binary, GB decimal; rounded to whole bytes.
std::optional<std::int64_t> published_bytes(std::string_view text);

/// Kind, parameters and metric of a publication.
struct PublishedRequest {
  std::string kind;
  std::string params;
  std::string metric;
  std::optional<std::int64_t> devices =
      std::nullopt;  ///< Devices of the layout, if no row states cards.
};
/// Result of a rule: a request, or the reason why there is none.
struct RuleResult {
  std::optional<PublishedRequest> question;
  std::string reason;
};
/// None: no rule matches publications of this form. `model`: its name in the catalog, or empty.
std::optional<RuleResult> apply_rules(const PublishedRow& publication,
                                      const Conditions& conditions,
                                      const std::string& model);

}  // namespace temper::sim_hw
