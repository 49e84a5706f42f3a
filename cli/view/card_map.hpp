// How busy each card of a simulated run was, as a map of its machine: nodes from left to right, the
// cards of a node from top to bottom, supernodes one below the other. A run on cards of several
// kinds has a map of each, under its name.
//
// A cell is one card, coloured where there are colours, else one of ten characters. What is too
// large for the width or for kMostMapLines shows the mean of neighbours in one cell: several nodes
// in a column, or a node's cards in a line.
#pragma once

#include "cli/view/canvas.hpp"
#include "orchestrator/metrics/summary.hpp"
#include "sim_hw/hardware/hardware_spec.hpp"

#include <string>
#include <vector>

namespace temper::cli {

/// How cards are numbered: node by node, supernode by supernode.
struct MachineShape {
  std::size_t cards_per_node = 8;
  std::size_t nodes = std::size_t{1} << 32;  ///< Of a supernode.
  std::string name = {};                     ///< Of one of several kinds.
  std::size_t first = 0;                     ///< Its first card.
  std::size_t cards = std::size_t{1} << 32;  ///< As many as there are, if fewer.
};

/// Of the cluster that a simulated run describes; where its description is gone, one row of nodes
/// of 8 cards.
MachineShape machine_shape(const sim_hw::HardwareSpec& cluster);

struct CardMap {
  std::vector<MachineShape> machines;
  struct Card {
    double busy = 0;  ///< Share of the wall time.
    char role = ' ';  ///< As in `roles`; ' ': the run does not use it.
  };
  std::vector<Card> cards;  ///< By id.
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

/// Empty where there are no cards. Requires: width >= 40.
std::string render_card_map(const CardMap& map, std::size_t width, Colours colours);

inline constexpr std::size_t kMostMapLines = 40;

}  // namespace temper::cli
