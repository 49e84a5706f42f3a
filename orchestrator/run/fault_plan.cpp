#include "orchestrator/run/fault_plan.hpp"

#include "core/files.hpp"
#include "core/parse_name.hpp"
#include "core/scalar_text.hpp"
#include "orchestrator/pipeline/simulation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace temper::orchestrator {
namespace {

/// By rates.
constexpr std::array kKinds{
    FaultKind::Card, FaultKind::Host, FaultKind::Link, FaultKind::Supernode};
constexpr double kLongestTrace = 1e9;  ///< Seconds.
constexpr std::int64_t kSlowest = 100;

/// Seconds between failures of one kind. Nothing is done in a shorter time, and time itself would
/// stand still between failures that are less than a nanosecond apart.
constexpr double kShortestMean = 1;

Duration mtbf_of(const actors::FaultConfig& config, FaultKind kind) {
  switch (kind) {
    case FaultKind::Card:
      return config.card_mtbf;
    case FaultKind::Host:
      return config.host_mtbf;
    case FaultKind::Link:
      return config.link_mtbf;
    case FaultKind::Supernode:
      return config.supernode_mtbf;
    case FaultKind::Stop:
    case FaultKind::Slow:
      break;
  }
  return {};
}

template <class T>
std::optional<T> number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return value;
}

/// Removes and returns the text before the next comma.
std::string_view cell(std::string_view& line) {
  const std::size_t comma = line.find(',');
  const std::string_view first = line.substr(0, comma);
  line.remove_prefix(comma == std::string_view::npos ? line.size() : comma + 1);
  return first;
}

/// Of `stop` and `slow`: how long, and how slow.
Status parse_length(std::string_view line, Fault& fault) {
  const auto length = number<double>(cell(line));
  if (!length || *length <= 0 || *length > kLongestTrace)
    return invalid_input(fmt::format("`{}` is for how many seconds?", name_of(fault.kind)));
  fault.length = from_seconds(*length);
  if (fault.kind == FaultKind::Stop)
    return line.empty() ? Status() : invalid_input("a stop has no more than its seconds");
  const auto times = number<std::int64_t>(line);
  if (!times || *times < 2 || *times > kSlowest)
    return invalid_input(fmt::format("how many times as slow, from 2 to {}?", kSlowest));
  fault.times = *times;
  return {};
}

/// Error: why the line is no failure.
Result<Fault> parse_fault(std::string_view line, const ClusterShape& shape) {
  const auto at = number<double>(cell(line));
  const std::string_view name = cell(line);
  const auto index = number<std::int64_t>(cell(line));
  const auto& kinds = EnumNames<FaultKind>::value;
  const auto kind = std::ranges::find(kinds, name, [](const auto& k) { return k.second; });
  if (!at || !index || kind == kinds.end() || *at < 0 || *at > kLongestTrace) {
    return invalid_input(
        "expected seconds,kind,index with kind card, host, link, supernode, stop or slow");
  }
  if (*index < 0 || *index >= shape.count(kind->first)) {
    return invalid_input(fmt::format(
        "there are {} of kind {} in use, found {}", shape.count(kind->first), name, *index));
  }
  Fault fault{Time(from_seconds(*at)), kind->first, *index};
  if (fault.kind == FaultKind::Stop || fault.kind == FaultKind::Slow)
    TEMPER_TRY_STATUS(parse_length(line, fault));
  else if (!line.empty())
    return invalid_input(fmt::format("`{}` behind the index of a {}", line, name));
  return fault;
}

Result<std::vector<Fault>> read_faults(const std::string& path, const ClusterShape& shape) {
  TEMPER_TRY(const std::string text, read_file(path));
  std::vector<Fault> faults;
  std::string_view rest = text;
  for (int n = 1; !rest.empty(); ++n) {
    const std::size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (line.empty() || line.front() == '#')
      continue;
    const auto fault = parse_fault(line, shape);
    if (!fault)
      return invalid_input(fmt::format("{}, line {}: {}", path, n, fault.error().context));
    faults.push_back(*fault);
  }
  std::ranges::stable_sort(faults, {}, &Fault::at);
  std::ranges::reverse(faults);
  return faults;
}

}  // namespace

std::string describe_fault(const Fault& fault) {
  if (fault.kind == FaultKind::Stop)
    return fmt::format("card {} stands still", fault.index);
  if (fault.kind == FaultKind::Slow)
    return fmt::format("card {} is slow", fault.index);
  return fmt::format("{} {} failed", name_of(fault.kind), fault.index);
}

std::int64_t ClusterShape::count(FaultKind kind) const {
  switch (kind) {
    case FaultKind::Card:
    case FaultKind::Link:
    case FaultKind::Stop:
    case FaultKind::Slow:
      return cards;
    case FaultKind::Host:
      return hosts();
    case FaultKind::Supernode:
      return supernodes();
  }
  return 0;
}

ClusterShape cluster_shape(const ResolvedPipeline& pipeline) {
  const std::int64_t cards = pipeline.config.placement.cards;
  if (!pipeline.simulation)
    return {cards, 1, std::max<std::int64_t>(1, cards)};
  const auto& cluster = pipeline.simulation->cluster;
  return {cards, cluster.cards_per_node, cluster.nodes};
}

void FaultPlan::Process::advance() {
  // Exponential; 1 - u is above 0. At most a century, which no run reaches.
  constexpr double kLongest = 3.2e9;
  at += from_seconds(std::min(kLongest, -mean_s * std::log(1 - random.uniform())));
}

Result<FaultPlan> FaultPlan::create(const actors::FaultConfig& config,
                                    const ClusterShape& shape,
                                    std::uint64_t seed) {
  FaultPlan plan;
  if (!config.trace.empty()) {
    TEMPER_TRY(plan.trace_, read_faults(config.trace, shape));
    return plan;
  }
  for (const FaultKind kind : kKinds) {
    const Duration mtbf = mtbf_of(config, kind);
    if (mtbf == Duration{} || config.rate <= 0)
      continue;
    const std::string stream = fmt::format("faults of {} {}", name_of(kind), config.seed);
    Process process{kind, Random(seed, stream), 0, shape.count(kind), Time{}};
    process.mean_s = seconds(mtbf) / config.rate /
                     static_cast<double>(std::max<std::int64_t>(1, process.components));
    if (process.mean_s < kShortestMean) {
      return invalid_input(
          fmt::format("simulation.faults.rate is {}, at which one of the {} of kind {} would fail "
                      "every {:.2g} s; lower it or raise simulation.faults.{}_mtbf, so that this "
                      "is {:.0f} s at least",
                      config.rate,
                      process.components,
                      name_of(kind),
                      process.mean_s,
                      name_of(kind),
                      kShortestMean));
    }
    process.advance();
    plan.processes_.push_back(process);
  }
  return plan;
}

Result<std::optional<FaultPlan>> FaultPlan::of(const ResolvedPipeline& pipeline) {
  const actors::FaultConfig& faults = pipeline.config.simulation.faults;
  if (!fails_by_plan(pipeline.config))
    return std::optional<FaultPlan>();
  TEMPER_TRY(FaultPlan plan, create(faults, cluster_shape(pipeline), pipeline.config.seed));
  return std::optional(std::move(plan));
}

const FaultPlan::Process* FaultPlan::earliest() const {
  const auto it = std::ranges::min_element(processes_, {}, &Process::at);
  return it == processes_.end() ? nullptr : &*it;
}

std::optional<Time> FaultPlan::next() const {
  if (!trace_.empty())
    return trace_.back().at;
  const Process* process = earliest();
  return process == nullptr ? std::nullopt : std::optional(process->at);
}

Fault FaultPlan::take() {
  if (!trace_.empty()) {
    const Fault fault = trace_.back();
    trace_.pop_back();
    return fault;
  }
  auto& process = *std::ranges::min_element(processes_, {}, &Process::at);
  const auto index = static_cast<std::int64_t>(
      process.random.below(static_cast<std::uint64_t>(process.components)));
  const Fault fault{process.at, process.kind, index};
  process.advance();
  return fault;
}

std::vector<ActorId> on_cards(const std::vector<ActorSpec>& actors, const std::set<CardId>& cards) {
  std::vector<ActorId> on;
  for (std::uint32_t i = 0; i < actors.size(); ++i) {
    if (std::ranges::any_of(actors[i].cards, [&](CardId card) { return cards.contains(card); }))
      on.emplace_back(i);
  }
  return on;
}

HostPool::HostPool(const actors::FaultConfig& config, const ClusterShape& shape)
    : config_(config), shape_(shape), usable_from_(static_cast<std::size_t>(shape.hosts())) {
  for (std::int32_t i = 0; i < config.spares; ++i)
    spares_.insert(Time{});
}

/// Replaces this host by the spare that is ready first, or by itself once repaired.
void HostPool::lose_host(std::int64_t host, Time now) {
  const Time back = now + config_.repair;
  Time from = back;
  if (!spares_.empty() && std::max(now, *spares_.begin()) + config_.replacement < back) {
    from = std::max(now, *spares_.begin()) + config_.replacement;
    spares_.erase(spares_.begin());
    spares_.insert(back);
  }
  usable_from_[static_cast<std::size_t>(host)] = from;
}

std::set<CardId> HostPool::cards_of(std::int64_t first_host, std::int64_t hosts) const {
  std::set<CardId> cards;
  const std::int64_t end = std::min(shape_.cards, (first_host + hosts) * shape_.cards_per_host);
  for (std::int64_t card = first_host * shape_.cards_per_host; card < end; ++card)
    cards.insert(CardId(static_cast<std::uint32_t>(card)));
  return cards;
}

std::set<CardId> HostPool::fail(const Fault& fault) {
  const Time now = fault.at;
  if (fault.kind == FaultKind::Stop || fault.kind == FaultKind::Slow)
    return {};
  if (fault.kind == FaultKind::Supernode) {
    const std::int64_t first = fault.index * shape_.hosts_per_supernode;
    std::set<CardId> cards = cards_of(first, shape_.hosts_per_supernode);
    for (const CardId card : cards) {
      Time& from = usable_from_[static_cast<std::size_t>(host_of(card))];
      from = std::max(from, now + config_.link_repair);
    }
    return cards;
  }
  const CardId card(static_cast<std::uint32_t>(fault.index));
  if (fault.kind == FaultKind::Link) {
    link_from_[card] = now + config_.link_repair;
    return {card};
  }
  const std::int64_t host = fault.kind == FaultKind::Card ? host_of(card) : fault.index;
  if (usable_from_[static_cast<std::size_t>(host)] > now)
    return {};
  lose_host(host, now);
  return cards_of(host, 1);
}

Time HostPool::usable_from(const std::vector<CardId>& cards) const {
  Time from{};
  for (const CardId card : cards) {
    from = std::max(from, usable_from_[static_cast<std::size_t>(host_of(card))]);
    if (const auto link = link_from_.find(card); link != link_from_.end())
      from = std::max(from, link->second);
  }
  return from;
}

}  // namespace temper::orchestrator
