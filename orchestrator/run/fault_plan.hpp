// The plan of fault injection: what fails when, and when its cards are usable again, in a simulated
// cluster or on the processes of a run on this machine. Equal configurations give equal plans.
//
// Failures of each kind are a Poisson process: n components with a mean time of m between failures
// of one fail every m / n on average, each with equal probability. A failed card takes its host out
// of use. A failed host is replaced by a spare, if there is one; otherwise by the first host that
// comes back: itself once repaired, or one that a spare replaced. Links and supernodes come back
// where they are. A card that stops or is slow for a while stays in use: its actors stop or are
// slow.
#pragma once

#include "actors/simulation/fault_config.hpp"
#include "core/ids.hpp"
#include "core/random.hpp"
#include "core/result.hpp"
#include "orchestrator/pipeline/resolve.hpp"

#include <array>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

namespace temper {
namespace orchestrator {

enum class FaultKind { Card, Host, Link, Supernode, Stop, Slow };

}  // namespace orchestrator

template <>
struct EnumNames<orchestrator::FaultKind> {
  using E = orchestrator::FaultKind;
  static constexpr std::array<std::pair<E, std::string_view>, 6> value{{{E::Card, "card"},
                                                                        {E::Host, "host"},
                                                                        {E::Link, "link"},
                                                                        {E::Supernode, "supernode"},
                                                                        {E::Stop, "stop"},
                                                                        {E::Slow, "slow"}}};
};

namespace orchestrator {

struct Fault {
  Time at{};
  FaultKind kind = FaultKind::Card;
  std::int64_t index = 0;  ///< Of the host or supernode; otherwise of the card.
  Duration length{};       ///< Of Stop and Slow.
  std::int64_t times = 1;  ///< Of Slow: the factor by which work takes longer.
  bool operator==(const Fault&) const = default;
};
/// "host 3 failed", "card 3 is slow"
std::string describe_fault(const Fault& fault);

/// The grouping of cards.
struct ClusterShape {
  std::int64_t cards = 0;  ///< In use.
  std::int64_t cards_per_host = 1;
  std::int64_t hosts_per_supernode = 1;

  std::int64_t hosts() const { return (cards + cards_per_host - 1) / cards_per_host; }
  std::int64_t supernodes() const {
    return (hosts() + hosts_per_supernode - 1) / hosts_per_supernode;
  }
  std::int64_t count(FaultKind kind) const;
};
/// The shape of a run's simulated cluster; on local hardware each card is a host, and all hosts are
/// one supernode.
ClusterShape cluster_shape(const ResolvedPipeline& pipeline);

class FaultPlan {
 public:
  /// Error: the trace cannot be read, or a line is no failure of this cluster; a kind would fail
  /// more than once per second.
  static Result<FaultPlan> create(const actors::FaultConfig& config,
                                  const ClusterShape& shape,
                                  std::uint64_t seed);
  /// The plan of a run; nullopt: nothing fails. Error: as create().
  static Result<std::optional<FaultPlan>> of(const ResolvedPipeline& pipeline);

  /// The time of the next failure; nullopt: nothing fails any more.
  std::optional<Time> next() const;
  /// Requires: next().
  Fault take();

 private:
  /// Failures of one kind.
  struct Process {
    FaultKind kind;
    Random random;
    double mean_s = 0;  ///< Between two.
    std::int64_t components = 0;
    Time at{};
    void advance();
  };
  const Process* earliest() const;

  std::vector<Process> processes_;
  std::vector<Fault> trace_;  ///< The next one last.
};

/// The actors that use any of these cards, by id.
std::vector<ActorId> on_cards(const std::vector<ActorSpec>& actors, const std::set<CardId>& cards);

/// The hosts, and when each is usable.
class HostPool {
 public:
  HostPool(const actors::FaultConfig& config, const ClusterShape& shape);

  /// The cards that fail now. None: they were out of use already, or are only slow or stopped for a
  /// while.
  std::set<CardId> fail(const Fault& fault);
  /// When all of these cards are usable. Later failures may change it.
  Time usable_from(const std::vector<CardId>& cards) const;

 private:
  std::int64_t host_of(CardId card) const { return card.value() / shape_.cards_per_host; }
  void lose_host(std::int64_t host, Time now);
  std::set<CardId> cards_of(std::int64_t first_host, std::int64_t hosts) const;

  actors::FaultConfig config_;
  ClusterShape shape_;
  std::vector<Time> usable_from_;     ///< By host position in the cluster.
  std::map<CardId, Time> link_from_;  ///< Cards whose link failed.
  std::multiset<Time> spares_;        ///< When each host without a position is usable.
};

}  // namespace orchestrator
}  // namespace temper
