#include "orchestrator/watch/flat_metrics.hpp"

#include "orchestrator/metrics/metric_table.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace temper::orchestrator {
namespace {

/// Reads objects of numbers, booleans, nulls and plain strings; such a line has nothing else. It is
/// separate from the general JSON parser for speed alone: opening the page of a run of 100,000
/// steps reads as many lines, and this parser allocates nothing. A test compares the two.
class LineReader {
 public:
  explicit LineReader(std::string_view text) : text_(text) {}

  bool read(FlatMetrics& to) { return object("", to) && at_ == text_.size(); }

 private:
  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c)
      return false;
    ++at_;
    return true;
  }
  bool word(std::string_view& to) {
    if (!take('"'))
      return false;
    const std::size_t end = text_.find_first_of("\"\\", at_);
    if (end == std::string_view::npos || text_[end] != '"')
      return false;
    to = text_.substr(at_, end - at_);
    at_ = end + 1;
    return true;
  }
  bool literal(std::string_view what) {
    if (text_.substr(at_, what.size()) != what)
      return false;
    at_ += what.size();
    return true;
  }
  bool value(const std::string& name, FlatMetrics& to) {
    if (at_ >= text_.size())
      return false;
    if (text_[at_] == '{')
      return object(name + "/", to);
    std::string_view ignored;
    if (text_[at_] == '"')
      return word(ignored);
    if (literal("null"))
      return true;
    if (literal("true"))
      return to.emplace_back(name, 1), true;
    if (literal("false"))
      return to.emplace_back(name, 0), true;
    double number = 0;
    const auto [end, error] =
        std::from_chars(text_.data() + at_, text_.data() + text_.size(), number);
    if (error != std::errc() || !std::isfinite(number))
      return false;
    at_ = static_cast<std::size_t>(end - text_.data());
    to.emplace_back(name, number);
    return true;
  }
  bool object(const std::string& prefix, FlatMetrics& to) {
    if (!take('{') || prefix.size() > 256)
      return false;
    if (take('}'))
      return true;
    do {
      std::string_view key;
      if (!word(key) || !take(':') || !value(prefix + std::string(key), to))
        return false;
    } while (take(','));
    return take('}');
  }

  const std::string_view text_;
  std::size_t at_ = 0;
};

/// Appends `busy` and `waiting`, sums over states that are read most often.
void add_shares(FlatMetrics& flat) {
  double busy = 0, waiting = 0;
  bool any = false;
  for (const auto& [name, value] : flat) {
    if (!name.starts_with("states/"))
      continue;
    any = true;
    const std::string_view state = std::string_view(name).substr(7);
    if (state.starts_with("wait-"))
      waiting += value;
    else if (state == "train" || state == "decode" || state == "prefill" || state == "reference" ||
             state == "reward" || state == "evaluate")
      busy += value;
  }
  if (!any)
    return;
  flat.emplace_back("busy", busy);
  flat.emplace_back("waiting", waiting);
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    words.emplace_back(word);
    text.remove_prefix(std::min(text.size(), word.size() + 1));
  }
  return words;
}

}  // namespace

std::optional<FlatMetrics> flatten_line(std::string_view line) {
  FlatMetrics flat;
  flat.reserve(64);
  if (!LineReader(line).read(flat))
    return std::nullopt;
  add_shares(flat);
  return flat;
}

FlatMetrics with_aliases(FlatMetrics flat, const std::vector<AliasTable>& tables) {
  const std::span<const Metric> metrics = metric_table();
  const std::size_t ours = flat.size();
  for (const AliasTable table : tables) {
    for (std::size_t i = 0; i < ours; ++i) {
      const auto it = std::ranges::find(metrics, flat[i].first, &Metric::name);
      if (it == metrics.end())
        continue;
      for (const std::string& name : words_of(it->names.in(table))) {
        if (std::ranges::find(flat, name, [](const auto& m) { return m.first; }) == flat.end())
          flat.emplace_back(name, flat[i].second);
      }
    }
  }
  return flat;
}

}  // namespace temper::orchestrator
