#include "sim_hw/published/published.hpp"

#include "core/split.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <filesystem>

namespace temper::sim_hw {
namespace {

template <class T>
std::optional<T> leading_number(std::string_view text) {
  T value{};
  const auto [stop, errc] = std::from_chars(text.data(), text.data() + text.size(), value);
  return errc == std::errc{} ? std::optional(value) : std::nullopt;
}

struct HardwareWords {
  std::string_view words;
  std::string_view name;
};
// Names used in publications; the first match counts.
constexpr std::array kHardware{
    HardwareWords{"CM384", "cm384"},
    HardwareWords{"Atlas 800 A3", "cm384"},
    HardwareWords{"Atlas A3", "cm384"},
    HardwareWords{"910C", "cm384"},
    HardwareWords{"910B", "ascend-910b"},
    HardwareWords{"Atlas 800I A3", "cm384"},
    HardwareWords{"Ascend NPU, 8 per node", "ascend-910b"},
    HardwareWords{"A100-80G", "nvidia-a100"},
    HardwareWords{"A100-class", "nvidia-a100"},
    HardwareWords{"H100 (96 GB", "nvidia-h100-96"},
    HardwareWords{"H100", "nvidia-h100"},
    HardwareWords{"H200", "nvidia-h200"},
    HardwareWords{"H800", "nvidia-h800"},
    HardwareWords{"GB200", "nvidia-gb200"},
    HardwareWords{"B200", "nvidia-b200"},
    HardwareWords{"H20", "nvidia-h20"},
};

std::string hardware_name(std::string_view published) {
  for (const HardwareWords& each : kHardware) {
    if (published.find(each.words) != std::string_view::npos)
      return std::string(each.name);
  }
  return slug(published);
}

/// Whether a metric compares two systems, or is normalized by an unstated formula.
bool is_ratio(std::string_view metric, std::string_view unit) {
  for (const std::string_view word :
       {"_ratio", "reduction", "gain", "saved", "mfu", "linearity", "share", "utilisation"}) {
    if (metric.find(word) != std::string_view::npos)
      return true;
  }
  return unit == "x";
}

/// Conditions that a cost of this area needs and the publication does not state.
std::string missing_conditions(const PublishedRow& p, const Conditions& c) {
  std::string missing;
  const auto need = [&](bool stated, std::string_view what) {
    if (!stated)
      missing += (missing.empty() ? "" : ", ") + std::string(what);
  };
  const bool layout = c.after("TP") || c.after("EP") || c.after("DP");
  const bool batch = c.mentions("batch");
  if (p.area == "serving_decode" || p.area == "serving_prefill") {
    need(batch, "batch");
    need(c.mentions("seq=") || c.mentions("context") || c.mentions("input="), "context");
    need(layout || c.mentions("batch_per"), "layout");
  } else if (p.area == "rl_iteration") {
    need(batch, "batch");
    need(c.mentions("(forced length)"), "distribution of lengths");
    need(c.mentions("rollout=") || c.mentions("gen["), "rollout layout");
    need(c.mentions("train=") || c.mentions("train["), "training layout");
  } else if (p.area == "pretrain") {
    need(c.after("TP") && c.after("PP"), "layout");
    need(batch || c.mentions("GBS"), "batch");
    need(c.mentions("seq="), "sequence length");
  } else if (p.area == "collective") {
    need(c.mentions("message=") || c.mentions("size=") || c.mentions("tokens_per_rank"), "message");
  } else if (p.area == "resharding") {
    need(c.mentions("mapping="), "both layouts");
    need(!p.cards.empty(), "number of cards");
  } else {
    need(false, "shapes");
  }
  return missing;
}

std::string reason_without_rule(const PublishedRow& p, const Conditions& c, bool model_known) {
  if (is_ratio(p.metric, p.unit))
    return "a ratio or share, not a cost of one operation";
  if (p.source.find("normalisation not stated") != std::string::npos)
    return "what the number is divided by is not stated";
  if (!model_known && p.model != "-" && p.area != "collective" && p.area != "operator")
    return "model not described: " + p.model;
  if (c.mentions("W8A8") || c.mentions("INT8") || c.mentions("FP8"))
    return "8-bit weights and activations: kind not modelled";
  const std::string missing = missing_conditions(p, c);
  if (!missing.empty())
    return "conditions missing: " + missing;
  return "kind not modelled: " + p.area + " " + p.metric;
}

Result<PublishedRow> read_publication(const CsvTable& table, std::string_view file, std::size_t i) {
  const auto text = [&](std::string_view column) { return table.rows[i][table.column(column)]; };
  PublishedRow p{text("id"),
                 text("area"),
                 text("system"),
                 text("hardware"),
                 text("cards"),
                 text("model"),
                 text("conditions"),
                 text("metric"),
                 text("unit"),
                 text("source"),
                 0};
  const auto value = leading_number<double>(text("value"));
  if (!value) {
    return invalid_input(fmt::format(
        "{}:{}: value: expected a number, found `{}`", file, table.lines[i], text("value")));
  }
  p.value = *value;
  return p;
}

/// Appends to one of the two lists.
void convert(const PublishedRow& p, const std::string& table, Catalog& catalog, Conversion& out) {
  const auto refuse = [&](std::string reason) {
    out.unused.push_back({p.id, p.area + " " + p.metric, std::move(reason), table});
  };
  if (p.source.find("[secondary") != std::string::npos)
    return refuse("secondary source: orientation only");
  const Conditions conditions(p.conditions);
  const Result<const ModelSpec*> model = catalog.model(p.model);
  const std::optional<RuleResult> result =
      apply_rules(p, conditions, model ? slug((*model)->name) : "");
  if (!result)
    return refuse(reason_without_rule(p, conditions, model.has_value()));
  if (!result->question)
    return refuse(result->reason);
  Row row;
  row.id = p.id;
  row.hardware = hardware_name(p.hardware);
  const auto hardware = catalog.hardware(row.hardware);
  if (!hardware)
    return refuse("hardware not described: " + p.hardware);
  const std::int64_t devices = result->question->devices.value_or(1);
  const std::int64_t dies = (*hardware)->dies_per_card;
  // "0.5" cards are one die of a card.
  row.cards = std::max<std::int64_t>(
      1, leading_number<std::int64_t>(p.cards).value_or((devices + dies - 1) / dies));
  row.kind = result->question->kind;
  row.params = result->question->params;
  row.metric = result->question->metric;
  row.unit = p.unit;
  row.value = p.value;
  row.source = p.source;
  row.table = table;
  row.area = p.area;
  out.rows.push_back(std::move(row));
}

}  // namespace

Conditions::Conditions(std::string_view text) : text_(text) {
  for (const std::string_view part : split(text, ";")) {
    const std::string_view item = trimmed(part);
    // "nccl-tests size=2048 bytes": the key is the last word before the equals sign.
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos)
      continue;
    const std::string_view before = trimmed(item.substr(0, equals));
    const std::size_t word = before.find_last_of(' ');
    values_.emplace(before.substr(word == std::string_view::npos ? 0 : word + 1),
                    trimmed(item.substr(equals + 1)));
  }
}

std::string Conditions::value(std::string_view key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? "" : found->second;
}

std::optional<double> Conditions::number(std::string_view key) const {
  return leading_number<double>(value(key));
}

std::optional<std::int64_t> Conditions::after(std::string_view text, std::string_view label) {
  for (std::size_t at = text.find(label); at != std::string_view::npos;
       at = text.find(label, at + 1)) {
    if (at > 0 && std::isalpha(static_cast<unsigned char>(text[at - 1])))
      continue;
    if (const auto value = leading_number<std::int64_t>(text.substr(at + label.size())))
      return value;
  }
  return std::nullopt;
}

std::optional<std::int64_t> published_bytes(std::string_view text) {
  double value = 0;
  const auto [stop, errc] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (errc != std::errc{})
    return std::nullopt;
  const std::string_view unit = trimmed(text.substr(static_cast<std::size_t>(stop - text.data())));
  constexpr std::array<std::pair<std::string_view, double>, 7> kUnits{{{"KiB", 1024.0},
                                                                       {"KB", 1024.0},
                                                                       {"MiB", 1048576.0},
                                                                       {"MB", 1048576.0},
                                                                       {"GiB", 1073741824.0},
                                                                       {"GB", 1e9},
                                                                       {"B", 1.0}}};
  for (const auto& [name, factor] : kUnits) {
    if (unit.starts_with(name))
      return std::llround(value * factor);
  }
  return unit.starts_with("bytes") ? std::optional(std::llround(value)) : std::nullopt;
}

bool is_publication_table(const CsvTable& table) {
  return table.has("area") && table.has("conditions");
}

Result<Conversion> convert_publications(const CsvTable& table,
                                        std::string_view file,
                                        Catalog& catalog) {
  for (const char* column : {"id",
                             "area",
                             "system",
                             "hardware",
                             "cards",
                             "model",
                             "conditions",
                             "metric",
                             "unit",
                             "value",
                             "source"}) {
    if (!table.has(column))
      return invalid_input(fmt::format("{}: no column `{}`", file, column));
  }
  Conversion out;
  const std::string name = std::filesystem::path(file).stem().string();
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    TEMPER_TRY(const PublishedRow publication, read_publication(table, file, i));
    convert(publication, name, catalog, out);
  }
  return out;
}

}  // namespace temper::sim_hw
