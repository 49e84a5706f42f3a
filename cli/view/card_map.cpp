#include "cli/view/card_map.hpp"

#include "cli/view/parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <span>
#include <utility>

namespace temper::cli {
namespace {

constexpr std::size_t kMostRanges = 3;  ///< Of the cards of a role.
constexpr std::string_view kRamp = " .:-=+*#%@";
/// A color ramp from dark to light whose steps differ in lightness alone.
constexpr std::array<int, 10> kHeat{236, 54, 90, 126, 132, 168, 173, 179, 186, 229};

char letter_of(actors::RoleKind role) {
  switch (role) {
    case actors::RoleKind::Rollout:
      return 'R';
    case actors::RoleKind::Reference:
      return 'F';
    case actors::RoleKind::Reward:
      return 'J';
    case actors::RoleKind::Trainer:
      return 'T';
  }
  return '?';
}

std::size_t level_of(double busy) {
  const auto level = static_cast<std::size_t>(std::clamp(busy, 0.0, 1.0) * 10);
  return std::min(level, kRamp.size() - 1);
}

/// Actors in id order as text: "rollout-0 to rollout-6, 32 cards each, trainer".
std::string names_of(const std::vector<const orchestrator::ActorSpec*>& actors) {
  std::string out;
  for (std::size_t i = 0; i < actors.size();) {
    std::size_t end = i + 1;
    bool alike = true;
    while (end < actors.size() && actors[end]->role == actors[i]->role) {
      alike = alike && actors[end]->cards.size() == actors[i]->cards.size();
      ++end;
    }
    out += (out.empty() ? "" : ", ") + actors[i]->name;
    if (end - i > 1) {
      out += " to " + actors[end - 1]->name;
      if (alike)
        out += fmt::format(", {} cards each", actors[i]->cards.size());
    }
    i = end;
  }
  return out;
}

/// One cell of the map: the mean of its cards.
struct Cell {
  double busy = 0;
  std::size_t cards = 0;
  char role = ' ';
  void add(const CardMap::Card& card) {
    if (card.role == ' ')
      return;
    busy += card.busy;
    role = cards == 0 || role == card.role ? card.role : '|';
    ++cards;
  }
};

/// The layout of the map: how many nodes and cards share a cell and a line.
struct Scale {
  std::size_t columns = 0;        ///< Per supernode.
  std::size_t nodes = 1;          ///< In a column.
  std::size_t cell_width = 1;     ///< Characters.
  std::size_t lines = 1;          ///< Per supernode.
  std::size_t cards_in_line = 1;  ///< Of each node.
  std::size_t supernodes = 1;
};

Scale scale_of(const MachineShape& m, std::size_t cards, std::size_t most_lines, std::size_t room) {
  const auto divided_up = [](std::size_t a, std::size_t b) { return (a + b - 1) / b; };
  Scale s;
  const std::size_t nodes = divided_up(cards, m.cards_per_node);
  s.supernodes = divided_up(nodes, m.nodes);
  const std::size_t across = std::min(nodes, m.nodes);
  s.nodes = divided_up(across, room);
  s.columns = divided_up(across, s.nodes);
  s.cell_width = s.columns * 2 <= room ? 2 : 1;
  s.lines = m.cards_per_node;
  if (s.supernodes * s.lines > most_lines) {
    s.lines = 1;
    s.cards_in_line = m.cards_per_node;
  }
  return s;
}

class MapPainter {
 public:
  MapPainter(const CardMap& map, Canvas& canvas) : map_(map), c_(canvas) {}

  void paint() {
    legend();
    for (const MachineShape& machine : map_.machines) {
      machine_ = machine;
      cards_ = std::span(map_.cards);
      cards_ = cards_.subspan(std::min(machine.first, cards_.size()));
      cards_ = cards_.first(std::min(machine.cards, cards_.size()));
      scale_ = scale_of(machine_,
                        cards_.size(),
                        kMostMapLines / map_.machines.size(),
                        c_.width() - kIndent - kLabelWidth);
      if (cards_.empty())
        continue;
      if (!machine.name.empty()) {
        label("cards").text(
            fmt::format(
                "{} to {}: {}", machine.first, machine.first + cards_.size() - 1, machine.name),
            kTitle);
        c_.line();
      }
      for (std::size_t s = 0; s < scale_.supernodes; ++s)
        supernode(s);
    }
    blocks();
  }

 private:
  Canvas& label(std::string_view text) {
    return c_.to(kIndent).text(text, kLabel).to(kIndent + kLabelWidth);
  }
  std::size_t card_at(std::size_t supernode, std::size_t node, std::size_t card) const {
    return (supernode * machine_.nodes + node) * machine_.cards_per_node + card;
  }
  Cell cell(std::size_t supernode, std::size_t column, std::size_t first, std::size_t count) const {
    Cell out;
    const std::size_t begin = column * scale_.nodes;
    const std::size_t end = std::min(begin + scale_.nodes, machine_.nodes);
    for (std::size_t node = begin; node < end; ++node) {
      for (std::size_t card = first; card < first + count; ++card) {
        if (const std::size_t id = card_at(supernode, node, card); id < cards_.size())
          out.add(cards_[id]);
      }
    }
    return out;
  }
  void put(const Cell& cell) {
    for (std::size_t i = 0; i < scale_.cell_width; ++i) {
      if (cell.cards == 0) {
        c_.text("·", kLabel);
        continue;
      }
      const std::size_t level = level_of(cell.busy / static_cast<double>(cell.cards));
      if (c_.coloured())
        c_.text("█", {.foreground = kHeat[level]});
      else
        c_.text(kRamp.substr(level, 1));
    }
  }
  void legend() {
    label("busy").text("0 % ", kLabel);
    for (std::size_t level = 0; level < kRamp.size(); ++level) {
      if (c_.coloured())
        c_.text("██", {.foreground = kHeat[level]});
      else
        c_.text("[").text(kRamp.substr(level, 1)).text("]");
    }
    c_.text(" 100 %", kLabel).line();
  }
  /// Every eighth character with the number of its first node.
  void numbers() {
    const std::size_t every = 8 / scale_.cell_width;
    label(scale_.nodes > 1 ? fmt::format("{} nodes each", scale_.nodes) : "node");
    for (std::size_t column = 0; column < scale_.columns; column += every) {
      c_.to(kIndent + kLabelWidth + column * scale_.cell_width);
      c_.text(std::to_string(column * scale_.nodes), kLabel);
    }
    c_.line();
  }
  void supernode(std::size_t s) {
    if (scale_.lines > 1 || s == 0)
      numbers();
    if (scale_.lines > 1) {
      label(scale_.supernodes > 1 ? fmt::format("supernode {}", s) : "role");
      for (std::size_t column = 0; column < scale_.columns; ++column) {
        const Cell all = cell(s, column, 0, machine_.cards_per_node);
        c_.text(std::string(scale_.cell_width, all.role), kTitle);
      }
      c_.line();
    }
    for (std::size_t line = 0; line < scale_.lines; ++line) {
      label(scale_.lines == 1 ? fmt::format("supernode {}", s) : fmt::format("card {}", line));
      for (std::size_t column = 0; column < scale_.columns; ++column)
        put(cell(s, column, line * scale_.cards_in_line, scale_.cards_in_line));
      c_.line();
    }
  }
  void blocks() {
    for (const CardMap::Block& block : map_.roles) {
      label(fmt::format("{}", block.role));
      const std::string spread =
          block.least < block.most
              ? fmt::format(" ({:.0f} to {})", block.least * 100, percent(block.most))
              : "";
      c_.text(fmt::format("{} busy{}", percent(block.mean), spread), kTitle);
      c_.text(fmt::format(
                  "  {}: {}{}", card_ranges(block.cards, kMostRanges), block.text, kind_of(block)),
              kLabel)
          .line();
    }
  }

  /// " of cm384", where there are several kinds.
  std::string kind_of(const CardMap::Block& block) const {
    const std::size_t card = block.cards.front().value();
    for (const MachineShape& machine : map_.machines) {
      if (!machine.name.empty() && card >= machine.first && card - machine.first < machine.cards)
        return " of " + machine.name;
    }
    return "";
  }

  const CardMap& map_;
  Canvas& c_;
  // Of the machine that is painted.
  MachineShape machine_;
  std::span<const CardMap::Card> cards_;
  Scale scale_;
};

}  // namespace

std::string card_ranges(const std::vector<CardId>& cards, std::size_t most) {
  std::string out;
  std::size_t parts = 0;
  for (std::size_t i = 0; i < cards.size();) {
    std::size_t end = i + 1;
    while (end < cards.size() && cards[end].value() == cards[end - 1].value() + 1)
      ++end;
    if (++parts > most)
      return out + ", ...";
    out += fmt::format("{}{}", out.empty() ? "" : ", ", cards[i]);
    if (end - i > 1)
      out += fmt::format("-{}", cards[end - 1]);
    i = end;
  }
  return out;
}

MachineShape machine_shape(const sim_hw::HardwareSpec& cluster) {
  MachineShape out;
  out.cards_per_node = static_cast<std::size_t>(std::max<std::int64_t>(1, cluster.cards_per_node));
  out.nodes = static_cast<std::size_t>(std::max<std::int64_t>(1, cluster.nodes));
  return out;
}

CardMap make_card_map(const orchestrator::Summary& summary,
                      const std::vector<orchestrator::ActorSpec>& actors,
                      std::vector<MachineShape> machines) {
  CardMap map;
  map.machines = std::move(machines);
  if (summary.utilization.per_card.empty())
    return map;
  map.cards.resize(summary.utilization.per_card.back().card.value() + 1);
  std::map<CardId, std::set<std::size_t>> on_card;
  for (std::size_t a = 0; a < actors.size(); ++a) {
    if (actors[a].away)
      continue;
    for (const CardId card : actors[a].cards)
      on_card[card].insert(a);
  }
  struct Found {
    std::set<std::size_t> actors;
    CardMap::Block block;
  };
  std::map<std::set<actors::RoleKind>, Found> found;
  for (const orchestrator::CardSummary& card : summary.utilization.per_card) {
    std::set<actors::RoleKind> roles;
    for (const std::size_t a : on_card[card.card])
      roles.insert(actors[a].role);
    if (roles.empty())
      continue;
    Found& f = found[roles];
    f.actors.merge(on_card[card.card]);
    CardMap::Block& block = f.block;
    block.role = roles.size() == 1 ? letter_of(*roles.begin()) : '+';
    block.least = block.cards.empty() ? card.busy : std::min(block.least, card.busy);
    block.most = std::max(block.most, card.busy);
    block.mean += card.busy;
    block.cards.push_back(card.card);
    map.cards[card.card.value()] = {card.busy, block.role};
  }
  for (auto& [roles, f] : found) {
    f.block.mean /= static_cast<double>(f.block.cards.size());
    std::vector<const orchestrator::ActorSpec*> named;
    for (const std::size_t a : f.actors)
      named.push_back(&actors[a]);
    f.block.text = names_of(named);
    map.roles.push_back(std::move(f.block));
  }
  std::ranges::sort(map.roles, {}, [](const CardMap::Block& b) { return b.cards.front(); });
  return map;
}

std::string render_card_map(const CardMap& map, std::size_t width, Colours colours) {
  if (map.roles.empty())
    return "";
  Canvas canvas(std::max<std::size_t>(width, 40), colours);
  MapPainter(map, canvas).paint();
  return canvas.take();
}

}  // namespace temper::cli
