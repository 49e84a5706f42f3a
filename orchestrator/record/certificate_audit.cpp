#include "orchestrator/record/certificate_audit.hpp"

#include "core/files.hpp"
#include "core/json_document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

namespace temper::orchestrator {
namespace {

using nlohmann::json;

constexpr std::size_t kMostViolations = 50;

/// A whole number under the key, or none.
std::optional<std::uint64_t> number(const json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_number_unsigned())
    return std::nullopt;
  return it->get<std::uint64_t>();
}

std::string shown(const std::optional<std::uint64_t>& value) {
  return value ? std::to_string(*value) : "none";
}

/// What a line says of groups, by their numbers.
using Entries = std::map<std::uint64_t, std::vector<const json*>>;

/// Compares the lines with the updates, one after the other.
class Comparison {
 public:
  Comparison(const std::vector<AuditedBatch>& batches, const AuditReport& report)
      : batches_(batches), report_(report), lines_(batches.size()) {}

  void read(std::uint64_t number_of_line, const std::string& text, bool is_last) {
    const json line = parse_json(text);
    const auto step = line.is_object() ? number(line, "step") : std::nullopt;
    if (!step || !line.contains("groups") || !line.at("groups").is_array()) {
      if (!is_last || report_.ended)
        say(fmt::format("line {} is no certificate", number_of_line));
      return;
    }
    const auto batch = std::ranges::find(batches_, *step, &AuditedBatch::step);
    if (batch == batches_.end()) {
      if (report_.ended || *step < report_.steps)
        say(fmt::format("step {}: certified, but the log has no such update", *step));
      return;
    }
    if (++lines_[static_cast<std::size_t>(batch - batches_.begin())] == 2)
      say(fmt::format("step {}: certified more than once", *step));
    compare(*batch, line);
  }

  void finish() {
    for (std::size_t i = 0; i < batches_.size(); ++i) {
      const bool may_lack = !report_.ended && i + 1 == batches_.size();
      if (lines_[i] > 0 || may_lack)
        continue;
      const auto& groups = batches_[i].groups;
      say(groups.empty() ? fmt::format("step {}: no certificate", batches_[i].step)
                         : fmt::format("step {}: no certificate of its {} groups, the first {}",
                                       batches_[i].step,
                                       groups.size(),
                                       groups.front().id));
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
      say(fmt::format("{}: {} is {}, by the log it is {}",
                      where,
                      key,
                      object.contains(key) ? object.at(key).dump() : "missing",
                      shown(expected)));
    }
  }

  void compare(const AuditedBatch& batch, const json& line) {
    const std::string where = fmt::format("step {}", batch.step);
    expect(where, line, "bound", report_.bound);
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
      say(fmt::format("{}, group {}: certified, but it was not trained then", where, id));
    expect(where, line, "age_max", most);
    const double mean = batch.groups.empty()
                            ? 0
                            : static_cast<double>(sum) / static_cast<double>(batch.groups.size());
    const auto it = line.find("age_mean");
    if (it == line.end() || !it->is_number() || std::abs(it->get<double>() - mean) > 1e-9)
      say(fmt::format("{}: age_mean is {}, by the log it is {}",
                      where,
                      it == line.end() ? "missing" : it->dump(),
                      mean));
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
        say(where + ": a group without its number");
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
    if (age && report_.bound && *age > *report_.bound)
      say(fmt::format("{}: age {} is beyond the bound {}", where, *age, *report_.bound));
  }

  const std::vector<AuditedBatch>& batches_;
  const AuditReport& report_;
  std::vector<std::size_t> lines_;  ///< Found of each batch.
};

}  // namespace

std::vector<std::string> audit_certificates(const std::filesystem::path& file,
                                            const std::vector<AuditedBatch>& batches,
                                            const AuditReport& report) {
  const auto text = read_file(file);
  if (!text && batches.empty())
    return {};
  if (!text)
    return {text.error().context};
  Comparison comparison(batches, report);
  std::istringstream in(*text);
  std::string line;
  for (std::uint64_t n = 1; std::getline(in, line); ++n)
    comparison.read(n, line, in.peek() == std::char_traits<char>::eof());
  comparison.finish();
  return std::move(comparison.violations);
}

}  // namespace temper::orchestrator
