#include "orchestrator/record/certificate_audit.hpp"

#include "core/files.hpp"
#include "core/hash.hpp"
#include "core/json_document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <utility>

namespace temper::orchestrator {
namespace {

using nlohmann::json;

/// The integer under the key; none if there is none.
std::optional<std::uint64_t> number(const json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_number_unsigned())
    return std::nullopt;
  return it->get<std::uint64_t>();
}

std::string shown(const std::optional<std::uint64_t>& value) {
  return value ? std::to_string(*value) : "none";
}

/// The entries of a certificate, by group.
using Entries = std::map<std::uint64_t, std::vector<const json*>>;

/// Reads a file line by line.
class Lines {
 public:
  explicit Lines(FileReader file) : file_(std::move(file)) {}

  /// None: end of file. Error: the file cannot be read.
  Result<std::optional<std::string>> next() {
    for (;;) {
      const std::size_t end = buffer_.find('\n', at_);
      if (end != std::string::npos) {
        std::string line = buffer_.substr(at_, end - at_);
        at_ = end + 1;
        return std::optional(std::move(line));
      }
      buffer_.erase(0, std::exchange(at_, 0));
      TEMPER_TRY(const std::size_t n, file_.read(buffer_, kPiece));
      if (n > 0)
        continue;
      ends_inside_ = !buffer_.empty();
      if (!ends_inside_)
        return std::optional<std::string>();
      return std::optional(std::exchange(buffer_, {}));
    }
  }
  /// Whether the last line had no newline.
  bool ends_inside() const { return ends_inside_; }

 private:
  static constexpr std::size_t kPiece = 65536;
  FileReader file_;
  std::string buffer_;
  std::size_t at_ = 0;
  bool ends_inside_ = false;
};

/// Calls `visit` for each line, with its number (from 1) and whether it is the last. Returns
/// whether the last line had no newline.
Result<bool> for_each_line(
    const std::filesystem::path& file,
    const std::function<void(std::uint64_t, const std::string&, bool)>& visit) {
  TEMPER_TRY(FileReader reader, FileReader::open(file));
  Lines lines(std::move(reader));
  TEMPER_TRY(auto line, lines.next());
  for (std::uint64_t n = 1; line; ++n) {
    TEMPER_TRY(auto after, lines.next());
    visit(n, *line, !after);
    line = std::move(after);
  }
  return lines.ends_inside();
}

/// Verifies the chain of checks.
class Chain {
 public:
  /// Whether the check of a line matches its text and the line before it.
  bool follows(std::string_view text) {
    constexpr std::string_view kKey = ",\"check\":\"", kEnd = "\"}";
    constexpr std::size_t kDigits = 16, kTail = kKey.size() + kDigits + kEnd.size();
    if (text.size() < kTail)
      return false;
    const std::string_view body = text.substr(0, text.size() - kTail);
    const std::string digits(text.substr(body.size() + kKey.size(), kDigits));
    const std::uint64_t before = std::exchange(check_, std::strtoull(digits.c_str(), nullptr, 16));
    return text == fmt::format("{}{}{:016x}{}", body, kKey, hash64(body, before), kEnd);
  }

 private:
  std::uint64_t check_ = 0;  ///< Check of the previous line.
};

/// Compares the lines with the batches, one after the other.
class Comparison {
 public:
  Comparison(const AuditedBatches& batches, const AuditReport& report)
      : batches_(batches), report_(report), lines_(batches.size()) {}

  void read(std::uint64_t number_of_line, const std::string& text, bool is_last) {
    if (!chain_.follows(text) && !broken_at_)
      broken_at_ = number_of_line;
    const json line = parse_json(text);
    const auto step = line.is_object() ? number(line, "step") : std::nullopt;
    if (!step || !line.contains("groups") || !line.at("groups").is_array()) {
      if (!is_last || report_.ended)
        say(fmt::format("line {} is not a certificate", number_of_line));
      else if (broken_at_ == number_of_line)
        broken_at_.reset();  // The line was truncated.
      return;
    }
    const auto batch = batches_.find(*step);
    if (!batch) {
      if (report_.ended || *step < report_.steps)
        say(fmt::format("step {}: certified, but events.log has no such step", *step));
      return;
    }
    lines_[*batch] = static_cast<std::uint8_t>(std::min(lines_[*batch] + 1, 3));
    if (lines_[*batch] == 2)
      say(fmt::format("step {}: certified more than once", *step));
    compare(batches_.at(*batch), line);
  }

  void finish() {
    for (std::size_t i = 0; i < batches_.size(); ++i) {
      const bool may_lack = !report_.ended && i + 1 == batches_.size();
      if (lines_[i] > 0 || may_lack)
        continue;
      const AuditedBatch batch = batches_.at(i);
      const auto& groups = batch.groups;
      say(groups.empty()
              ? fmt::format("step {}: no certificate", batch.step)
              : fmt::format("step {}: no certificate for its {} groups, the first of which is {}",
                            batch.step,
                            groups.size(),
                            groups.front().id));
    }
  }

  /// Call after finish(). The contents are right; this checks that the lines are the original ones.
  void check_chain(bool ends_with_a_break) {
    if (!violations.empty())
      return;
    if (broken_at_) {
      say(fmt::format("line {} fails its check: it or the line before it was changed",
                      *broken_at_));
    } else if (!ends_with_a_break && report_.ended) {
      say("the last line is truncated");
    }
  }

  std::vector<std::string> violations;

 private:
  void say(const std::string& what) {
    if (violations.size() < kMostViolations)
      violations.push_back("certificates.jsonl: " + what);
  }

  void expect(const std::string& where,
              const json& object,
              const char* key,
              const std::optional<std::uint64_t>& expected) {
    const bool is_null = object.contains(key) && object.at(key).is_null();
    const auto found = number(object, key);
    if (found != expected || (!expected && !is_null)) {
      say(fmt::format("{}: {}: found {}, expected {} from events.log",
                      where,
                      key,
                      object.contains(key) ? object.at(key).dump() : "missing",
                      shown(expected)));
    }
  }

  void compare(const AuditedBatch& batch, const json& line) {
    const std::string where = fmt::format("step {}", batch.step);
    expect(where, line, "bound", batch.bound);
    std::uint64_t sum = 0, most = 0;
    std::optional<std::uint64_t> oldest, newest;
    Entries entries = entries_of(where, line.at("groups"));
    for (const AuditedBatch::Group& group : batch.groups) {
      const auto found = entries.extract(group.id);
      compare(batch, group, found ? found.mapped() : std::vector<const json*>());
      sum += batch.step - group.age_from;
      most = std::max(most, batch.step - group.age_from);
      if (group.oldest) {
        oldest = std::min(oldest.value_or(*group.oldest), *group.oldest);
        newest = std::max(newest.value_or(*group.newest), *group.newest);
      }
    }
    for (const auto& [id, others] : entries)
      say(fmt::format("{}, group {}: certified, but not trained in that step", where, id));
    expect(where, line, "age_max", most);
    const double mean = batch.groups.empty()
                            ? 0
                            : static_cast<double>(sum) / static_cast<double>(batch.groups.size());
    const auto it = line.find("age_mean");
    if (it == line.end() || !it->is_number() || std::abs(it->get<double>() - mean) > 1e-9) {
      say(fmt::format("{}: age_mean: found {}, expected {} from events.log",
                      where,
                      it == line.end() ? "missing" : it->dump(),
                      mean));
    }
    const json versions = line.value("versions", json::object());
    expect(where, versions, "oldest", oldest);
    expect(where, versions, "newest", newest);
  }

  Entries entries_of(const std::string& where, const json& groups) {
    Entries out;
    for (const json& entry : groups) {
      if (const auto id = entry.is_object() ? number(entry, "group") : std::nullopt)
        out[*id].push_back(&entry);
      else
        say(where + ": a group without a number");
    }
    return out;
  }

  void compare(const AuditedBatch& batch,
               const AuditedBatch::Group& group,
               const std::vector<const json*>& entries) {
    const std::string where = fmt::format("step {}, group {}", batch.step, group.id);
    if (entries.empty())
      return say(where + ": trained, but not in the certificate");
    if (entries.size() > 1)
      return say(where + ": certified twice");
    const json& entry = *entries.front();
    expect(where, entry, "v0", group.dispatched);
    expect(where, entry, "age", batch.step - group.age_from);
    expect(where, entry, "oldest", group.oldest);
    expect(where, entry, "newest", group.newest);
    const auto age = number(entry, "age");
    if (age && batch.bound && *age > *batch.bound)
      say(fmt::format("{}: age {} exceeds the bound {}", where, *age, *batch.bound));
  }

  const AuditedBatches& batches_;
  const AuditReport& report_;
  std::vector<std::uint8_t> lines_;  ///< Lines found of each batch; 3: 3 or more.
  Chain chain_;
  std::optional<std::uint64_t> broken_at_;  ///< The first line that breaks the chain.
};

}  // namespace

std::vector<std::string> audit_certificates(const std::filesystem::path& file,
                                            const AuditedBatches& batches,
                                            const AuditReport& report) {
  Comparison comparison(batches, report);
  const auto ends_inside =
      for_each_line(file, [&](std::uint64_t n, const std::string& line, bool is_last) {
        comparison.read(n, line, is_last);
      });
  if (!ends_inside && batches.size() == 0)
    return {};
  if (!ends_inside)
    return {ends_inside.error().context};
  comparison.finish();
  comparison.check_chain(!*ends_inside);
  return std::move(comparison.violations);
}

std::string check_certificate_chain(const std::filesystem::path& file) {
  Chain chain;
  std::string wrong;
  std::optional<std::uint64_t> last;  // The last line, if it fails its check.
  const auto ends_inside =
      for_each_line(file, [&](std::uint64_t n, const std::string& line, bool is_last) {
        if (chain.follows(line) || !wrong.empty())
          return;
        if (is_last)
          last = n;
        else
          wrong = fmt::format("line {} fails its check", n);
      });
  if (!ends_inside)
    return ends_inside.error().code == ErrorCode::NotFound ? "" : ends_inside.error().context;
  if (wrong.empty() && last && !*ends_inside)  // Otherwise it was truncated while it was written.
    wrong = fmt::format("line {} fails its check", *last);
  return wrong;
}

}  // namespace temper::orchestrator
