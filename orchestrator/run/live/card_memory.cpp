#include "orchestrator/run/live/card_memory.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace temper::orchestrator {
namespace {

std::string mib(double bytes) {
  return fmt::format("{:.1f} MiB", bytes / (1 << 20));
}

double share_on(const ActorSpec& actor, CardId card, Bytes resident) {
  if (std::ranges::find(actor.cards, card) == actor.cards.end())
    return 0;
  return static_cast<double>(resident.count()) / static_cast<double>(actor.cards.size());
}

}  // namespace

std::optional<std::string> CardMemory::note(std::span<const ActorSpec> actors,
                                            ActorId actor,
                                            Bytes resident) {
  resident_[actor] = resident;
  std::optional<std::string> excess;
  for (const CardId card : actors[actor.value()].cards) {
    const double held = on_card(actors, card);
    peaks_[card] = std::max(peaks_[card], held);
    if (limit_ > Bytes(0) && held > static_cast<double>(limit_.count()) && !excess) {
      excess = fmt::format(
          "the processes of card {} hold {} of the {} that it may "
          "(placement.card_memory): {}",
          card,
          mib(held),
          mib(static_cast<double>(limit_.count())),
          holders(actors, card));
    }
  }
  return excess;
}

std::string CardMemory::peaks() const {
  std::string out;
  for (const auto& [card, bytes] : peaks_)
    out += fmt::format("{}card {} {}", out.empty() ? "" : ", ", card, mib(bytes));
  return out;
}

double CardMemory::on_card(std::span<const ActorSpec> actors, CardId card) const {
  double sum = 0;
  for (const auto& [actor, resident] : resident_)
    sum += share_on(actors[actor.value()], card, resident);
  return sum;
}

std::string CardMemory::holders(std::span<const ActorSpec> actors, CardId card) const {
  std::string out;
  for (const auto& [actor, resident] : resident_) {
    const ActorSpec& spec = actors[actor.value()];
    if (const double held = share_on(spec, card, resident); held > 0)
      out += fmt::format("{}{} {}", out.empty() ? "" : ", ", spec.name, mib(held));
  }
  return out;
}

}  // namespace temper::orchestrator
