#include "orchestrator/watch/sample_query.hpp"

#include "core/json.hpp"
#include "orchestrator/pipeline/load.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

namespace temper::orchestrator {
namespace {

using Order = SampleQuery::Order;

/// Lines of one group, and their sort key.
struct Candidate {
  std::string_view head() const { return std::string_view(lines.front()).substr(0, head_size); }

  std::vector<std::string> lines;
  std::size_t head_size = 0;  ///< Bytes at the front of each line that name step and group.
  bool has_text = false;
  Spread reward;
  double rank = 0;  ///< Lowest first.
};

/// The value of a key of a line, without parsing the line: quotes inside texts are escaped, so the
/// search text cannot occur in one. Empty: the line does not have the key.
std::string_view value_of(std::string_view line, std::string_view key) {
  const std::size_t at = line.find(key);
  return at == std::string_view::npos ? std::string_view() : line.substr(at + key.size());
}

/// Length of the front part that names step and group; 0: it names none.
std::size_t head_size_of(std::string_view line) {
  const std::size_t at = line.find(",\"place\":");
  return at == std::string_view::npos ? 0 : at;
}

bool has_text(std::string_view line, std::string_view text) {
  const auto sample = parse_sample(line);
  const auto in = [&](const std::string& where) { return where.find(text) != std::string::npos; };
  return sample && (in(sample->prompt) || in(sample->response) || in(sample->answer));
}

/// Collects the lines of the file into groups, and keeps the groups that match.
class Collector {
 public:
  explicit Collector(const SampleQuery& query)
      : query_(query),
        begin_(query.step ? fmt::format("{{\"step\":{},", *query.step) : "{\"step\":"),
        quoted_(to_json(query.text)) {}

  void add(std::string_view line) {
    // A line begins with its step, and texts are escaped as in JSON, so that most lines are skipped
    // without parsing.
    const std::string_view reward = value_of(line, ",\"reward\":");
    if (!line.starts_with(begin_) || reward.empty())
      return;
    const std::size_t head = head_size_of(line);
    if (!group_ || head == 0 || group_->head() != line.substr(0, head)) {
      finish();
      group_.emplace();
      group_->head_size = head;
    }
    const std::string_view escaped = std::string_view(quoted_).substr(1, quoted_.size() - 2);
    group_->has_text =
        group_->has_text || query_.text.empty() ||
        (line.find(escaped) != std::string_view::npos && has_text(line, query_.text));
    if (double value = 0;
        std::from_chars(reward.data(), reward.data() + reward.size(), value).ec == std::errc())
      group_->reward.add(value);
    group_->lines.emplace_back(line);
  }

  /// Call after the last line.
  FoundSamples take() {
    finish();
    for (Candidate& group : kept_) {
      FoundGroup& to = found_.groups.emplace_back();
      to.reward = group.reward;
      for (std::string& line : group.lines) {
        if (auto sample = parse_sample(line))
          to.responses.push_back({*std::move(sample), std::move(line)});
      }
      if (to.responses.empty())
        found_.groups.pop_back();
    }
    return std::move(found_);
  }

 private:
  void finish() {
    if (!group_ || !group_->has_text)
      return;
    ++found_.matches;
    Candidate group = *std::move(group_);
    group_.reset();
    if (query_.order == Order::Newest) {
      kept_.push_back(std::move(group));
      if (kept_.size() > query_.limit)
        kept_.pop_front();
      return;
    }
    group.rank = group.reward.count() == 0     ? std::numeric_limits<double>::infinity()
                 : query_.order == Order::Best ? -group.reward.mean()
                                               : group.reward.mean();
    const auto at = std::ranges::upper_bound(kept_, group.rank, {}, &Candidate::rank);
    if (at == kept_.end() && kept_.size() >= query_.limit)
      return;
    kept_.insert(at, std::move(group));
    if (kept_.size() > query_.limit)
      kept_.pop_back();
  }

  const SampleQuery& query_;
  const std::string begin_;
  const std::string quoted_;
  std::optional<Candidate> group_;
  std::deque<Candidate> kept_;
  FoundSamples found_;
};

/// Whether the task of the run writes answers with the least significant digit first.
bool answers_are_reversed(const std::filesystem::path& run_dir) {
  if (!read_file(UntrustedFolder(run_dir), "config.yaml"))
    return false;
  const auto config = load_config(run_dir / "config.yaml");
  return config && config->task.kind == actors::TaskKind::Addition && config->task.reverse_answer;
}

}  // namespace

Result<FoundSamples> find_samples(const UntrustedFolder& run_dir, const SampleQuery& query) {
  Collector collector(query);
  TEMPER_TRY_STATUS(read_sample_lines(run_dir, [&](std::string_view line) {
    collector.add(line);
    return LineVisit::Continue;
  }));
  FoundSamples found = collector.take();
  found.reversed = answers_are_reversed(run_dir.path());
  return found;
}

}  // namespace temper::orchestrator
