// A map of how busy each card of a simulated run was: nodes from left to right, the cards of a node
// from top to bottom, supernodes below each other. Each kind of card has its own map.
//
// A cell is one card, shown as a color or as one of ten characters. If the map exceeds the width or
// kMostMapLines, a cell shows the mean of neighbors: several nodes, or all cards of a node.
#pragma once

#include "cli/view/canvas.hpp"
#include "orchestrator/metrics/summary.hpp"
#include "sim_hw/hardware/hardware_spec.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace temper::cli {

/// The numbering of cards: node by node, supernode by supernode.
struct MachineShape {
  std::size_t cards_per_node = 8;
  std::size_t nodes = std::size_t{1} << 32;  ///< Nodes per supernode.
  std::string name = {};                     ///< Kind of card, if there are several.
  std::size_t first = 0;                     ///< Id of its first card.
  std::size_t cards = std::size_t{1} << 32;  ///< Upper limit of its cards.
};

/// The shape of a simulated run's cluster. Without a description of it: one row of 8-card nodes.
MachineShape machine_shape(const sim_hw::HardwareSpec& cluster);

struct CardMap {
  std::vector<MachineShape> machines;
  struct Card {
    double busy = 0;  ///< Share of the wall time.
    char role = ' ';  ///< Letter as in `roles`; ' ': the run does not use the card.
  };
  std::vector<Card> cards;  ///< Indexed by card id.
  /// Cards with the same roles.
  struct Block {
    char role = ' ';
    std::string text;  ///< "rollout-0 to rollout-6, 32 cards each".
    std::vector<CardId> cards;
    double least = 0, mean = 0, most = 0;  ///< Busy shares.
  };
  std::vector<Block> roles;
};

/// Letters: R rollout, F reference, J reward, T trainer; + several on one card.
CardMap make_card_map(const orchestrator::Summary& summary,
                      const std::vector<orchestrator::ActorSpec>& actors,
                      std::vector<MachineShape> machines);

/// "0-31", "0-3, 8-11"; "..." in place of what is beyond `most` ranges.
std::string card_ranges(const std::vector<CardId>& cards, std::size_t most = SIZE_MAX);

/// The map as text; empty if there are no cards. Precondition: width >= 40 columns.
std::string render_card_map(const CardMap& map, std::size_t width, Colours colours);

inline constexpr std::size_t kMostMapLines = 40;

}  // namespace temper::cli
