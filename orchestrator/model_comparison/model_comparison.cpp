#include "orchestrator/model_comparison/model_comparison.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>

namespace temper::orchestrator {
namespace {

/// The logarithm of the sum of exp(logits).
double log_sum(std::span<const float> logits) {
  const double largest = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float x : logits)
    sum += std::exp(x - largest);
  return largest + std::log(sum);
}

/// As a text in quotes, shortened around the first byte that differs from `other`.
std::string excerpt_of(const std::string& text, const std::string& other) {
  constexpr std::size_t kBefore = 20, kLength = 60;
  const auto at = static_cast<std::size_t>(std::ranges::mismatch(text, other).in1 - text.begin());
  const std::size_t begin = at < kBefore ? 0 : at - kBefore;
  std::string out;
  for (const char c : text.substr(begin, kLength)) {
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return fmt::format(
      "{}\"{}\"{}", begin > 0 ? "..." : "", out, begin + kLength < text.size() ? "..." : "");
}

std::string outcome_text(const RenderedChat& chat, const RenderedChat& other) {
  return chat.error.empty() ? excerpt_of(chat.text, other.text) : "the error: " + chat.error;
}

SequenceDifference total_of(const std::vector<SequenceDifference>& sequences) {
  SequenceDifference all;
  all.input = "all";
  for (const SequenceDifference& s : sequences) {
    all.tokens += s.tokens;
    all.largest = std::max(all.largest, s.largest);
    all.mean += s.mean * static_cast<double>(s.tokens);
    all.same_best += s.same_best;
    all.of_tolerance = std::max(all.of_tolerance, s.of_tolerance);
  }
  all.mean /= static_cast<double>(std::max<std::int64_t>(all.tokens, 1));
  return all;
}

std::string table_row(const SequenceDifference& s) {
  return fmt::format("{:<8} {:>6} {:>20.1e} {:>17.1e} {:>15}\n",
                     s.input,
                     s.tokens,
                     s.largest,
                     s.mean,
                     fmt::format("{} of {}", s.same_best, s.tokens));
}

std::string equal_text(const EqualTexts& e, std::string_view what) {
  if (e.compared == 0)
    return e.note;
  const std::string first =
      e.equal == e.compared ? "" : fmt::format("; the first that differs: {}", e.note);
  return fmt::format("{} of {} {} equal{}", e.equal, e.compared, what, first);
}

std::string verdict_text(const ModelComparison& c) {
  if (c.agrees)
    return "Temper and transformers agree";
  std::vector<std::string_view> differ;
  if (total_of(c.sequences).of_tolerance > 1)
    differ.emplace_back("log-probabilities");
  if (c.tokenizer.equal < c.tokenizer.compared)
    differ.emplace_back("token ids of texts");
  if (c.chat_template.equal < c.chat_template.compared)
    differ.emplace_back("rendered chats");
  return fmt::format(
      "Temper and transformers differ in {}: do not train this model with the C++ "
      "roles; use the Python roles (docs/how-to/python-roles.md), and report the "
      "difference",
      fmt::join(differ, " and "));
}

}  // namespace

SequenceDifference compare_logits(std::span<const float> ours,
                                  std::span<const float> theirs,
                                  std::int32_t vocabulary) {
  const auto width = static_cast<std::size_t>(vocabulary);
  SequenceDifference d;
  double sum = 0;
  for (std::size_t begin = 0; begin < ours.size(); begin += width) {
    const auto a = ours.subspan(begin, width), b = theirs.subspan(begin, width);
    const double norm_a = log_sum(a), norm_b = log_sum(b);
    for (std::size_t i = 0; i < width; ++i) {
      const double expected = b[i] - norm_b, difference = std::abs(a[i] - norm_a - expected);
      const double accepted = kAbsoluteTolerance + kRelativeTolerance * std::abs(expected);
      d.largest = std::max(d.largest, difference);
      d.of_tolerance = std::max(d.of_tolerance, difference / accepted);
      sum += difference;
    }
    ++d.tokens;
    d.same_best +=
        std::ranges::max_element(a) - a.begin() == std::ranges::max_element(b) - b.begin();
  }
  d.mean = sum / static_cast<double>(std::max<std::size_t>(ours.size(), 1));
  return d;
}

EqualTexts compare_tokens(std::span<const std::vector<std::int32_t>> ours,
                          const TransformersAnswer& theirs) {
  EqualTexts out;
  if (!theirs.tokenizer_error.empty()) {
    out.note = "not compared: transformers cannot load it: " + theirs.tokenizer_error;
    return out;
  }
  for (std::size_t i = 0; i < ours.size(); ++i) {
    ++out.compared;
    if (ours[i] == theirs.tokens[i]) {
      ++out.equal;
    } else if (out.equal + 1 == out.compared) {
      out.note = fmt::format("text {}: Temper [{}], transformers [{}]",
                             i + 1,
                             fmt::join(ours[i], ", "),
                             fmt::join(theirs.tokens[i], ", "));
    }
  }
  return out;
}

EqualTexts compare_chats(std::span<const RenderedChat> ours, const TransformersAnswer& theirs) {
  EqualTexts out;
  if (!theirs.tokenizer_error.empty()) {
    out.note = "not compared: transformers cannot load the tokenizer";
    return out;
  }
  for (std::size_t i = 0; i < ours.size(); ++i) {
    if (!ours[i].error.empty()) {
      if (out.note.empty())
        out.note = theirs.chats ? "not compared: Temper rejects it: " + ours[i].error : "none";
      continue;
    }
    const RenderedChat other =
        theirs.chats ? (*theirs.chats)[i] : RenderedChat{"", "the tokenizer has no chat template"};
    ++out.compared;
    if (other.error.empty() && ours[i].text == other.text) {
      ++out.equal;
    } else if (out.equal + 1 == out.compared) {
      out.note = fmt::format("chat {}: Temper {}, transformers {}",
                             i + 1,
                             outcome_text(ours[i], other),
                             outcome_text(other, ours[i]));
    }
  }
  return out;
}

bool agrees(const ModelComparison& c) {
  return total_of(c.sequences).of_tolerance <= 1 && c.tokenizer.equal == c.tokenizer.compared &&
         c.chat_template.equal == c.chat_template.compared;
}

std::string to_text(const ModelComparison& c) {
  std::string out = fmt::format("{:<14} {}, {} in transformers {} with torch {}, float32\n",
                                "model",
                                c.name,
                                c.architecture,
                                c.transformers,
                                c.torch);
  out += fmt::format("{:<14} {}\n", "token ids", equal_text(c.tokenizer, "texts"));
  out += fmt::format("{:<14} {}\n", "chat template", equal_text(c.chat_template, "chats"));
  out += fmt::format("\ndifference of log-probabilities\n{:<8} {:>6} {:>20} {:>17} {:>15}\n",
                     "input",
                     "tokens",
                     "largest",
                     "mean",
                     "same best token");
  for (const SequenceDifference& s : c.sequences)
    out += table_row(s);
  const SequenceDifference all = total_of(c.sequences);
  out += table_row(all);
  out += fmt::format(
      "tolerance: {:g} + {:g} |log-probability|; the largest difference is {:.2g} of it\n",
      kAbsoluteTolerance,
      kRelativeTolerance,
      all.of_tolerance);
  return out + "\n" + verdict_text(c) + "\n";
}

}  // namespace temper::orchestrator
