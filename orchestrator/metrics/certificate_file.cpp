#include "orchestrator/metrics/certificate_file.hpp"

#include "core/hash.hpp"
#include "core/json.hpp"
#include "core/replace.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace temper::orchestrator {
namespace {

struct Versions {
  std::optional<PolicyVersion> oldest, newest;
};
void describe(auto& v, Versions& r) {
  v.field(1, "oldest", r.oldest);
  v.field(2, "newest", r.newest);
}

struct GroupPart {
  GroupId group;
  PolicyVersion v0;
  std::uint64_t age = 0;
  Versions versions;
};
void describe(auto& v, GroupPart& g) {
  v.field(1, "group", g.group);
  v.field(2, "v0", g.v0);
  v.field(3, "age", g.age);
  v.field(4, "oldest", g.versions.oldest);
  v.field(5, "newest", g.versions.newest);
}

struct Line {
  PolicyVersion step;
  std::optional<std::uint64_t> bound;
  std::uint64_t age_max = 0;
  double age_mean = 0;
  Versions versions;
  std::vector<GroupPart> groups;
};
void describe(auto& v, Line& l) {
  v.field(1, "step", l.step);
  v.field(2, "bound", l.bound);
  v.field(3, "age_max", l.age_max);
  v.field(4, "age_mean", l.age_mean);
  v.field(5, "versions", l.versions);
  v.field(6, "groups", l.groups);
}

Line line_of(const TrainedBatch& batch) {
  Line line;
  line.step = batch.step;
  line.bound = batch.bound;
  std::uint64_t sum = 0;
  for (const TrainedBatch::Group& g : batch.groups) {
    const std::uint64_t age = batch.step.value() - g.age_from.value();
    line.groups.push_back({g.group, g.dispatched, age, {g.oldest, g.newest}});
    sum += age;
    line.age_max = std::max(line.age_max, age);
    if (!g.oldest)
      continue;
    line.versions.oldest = std::min(line.versions.oldest.value_or(*g.oldest), *g.oldest);
    line.versions.newest = std::max(line.versions.newest.value_or(*g.newest), *g.newest);
  }
  if (!line.groups.empty())
    line.age_mean = static_cast<double>(sum) / static_cast<double>(line.groups.size());
  return line;
}

}  // namespace

Result<CertificateFile> CertificateFile::create(const std::filesystem::path& path) {
  TEMPER_TRY(AppendFile file, AppendFile::open(path, 0));
  return CertificateFile(path, std::move(file));
}

Status CertificateFile::put_in_place(const std::filesystem::path& from,
                                     const std::filesystem::path& to) {
  TEMPER_TRY(file_, temper::put_in_place(std::move(file_), from, to));
  path_ = to;
  return {};
}

Status CertificateFile::feed(const Record& record, const RunMetrics& metrics) {
  const std::uint64_t updates = metrics.history().count();
  if (updates < end_.updates) {  // A resume.
    while (!ends_.empty() && ends_.back().updates > updates)
      ends_.pop_back();
    end_ = ends_.empty() ? End() : ends_.back();
    TEMPER_TRY(file_, AppendFile::open(path_, end_.bytes));
  }
  if (std::holds_alternative<event::CheckpointSaved>(record.event)) {
    ends_.push_back(end_);
    if (ends_.size() > kMostWaysBack)
      ends_.erase(ends_.begin());
  }
  if (!std::holds_alternative<event::Trained>(record.event) || updates == end_.updates)
    return {};
  std::string line = to_json(line_of(metrics.last_batch()));
  line.pop_back();  // The closing brace.
  const std::uint64_t check = hash64(line, end_.check);
  Status written = file_.append(fmt::format("{},\"check\":\"{:016x}\"}}\n", line, check));
  end_ = {updates, file_.size(), check};  // Advances even if the write failed.
  return written;
}

}  // namespace temper::orchestrator
