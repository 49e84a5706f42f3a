#include "actors/byte_pair/merges.hpp"

#include <queue>
#include <tuple>

namespace temper::actors {
namespace {

std::uint64_t key_of(std::int32_t left, std::int32_t right) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
         static_cast<std::uint32_t>(right);
}

constexpr std::size_t kNone = SIZE_MAX;

/// A symbol in a linked list; removed once it is joined to its left neighbor.
struct Symbol {
  std::int32_t id = 0;
  std::size_t left = kNone;
  std::size_t right = kNone;
  bool gone = false;
};

/// Two adjacent symbols that could be joined when the candidate was added.
struct Candidate {
  std::int32_t rank = 0;
  std::size_t at = 0;
  std::int32_t left = 0;
  std::int32_t right = 0;
  std::int32_t joined = 0;
  bool operator>(const Candidate& other) const {
    return std::tie(rank, at) > std::tie(other.rank, other.at);
  }
};

}  // namespace

void Merges::add(std::int32_t left, std::int32_t right, std::int32_t joined) {
  merges_[key_of(left, right)] = {count_++, joined};
}

const Merges::Merge* Merges::find(std::int32_t left, std::int32_t right) const {
  const auto at = merges_.find(key_of(left, right));
  return at == merges_.end() ? nullptr : &at->second;
}

std::vector<std::int32_t> Merges::apply(std::span<const std::int32_t> symbols) const {
  std::vector<Symbol> list(symbols.size());
  for (std::size_t i = 0; i < list.size(); ++i)
    list[i] = {symbols[i], i == 0 ? kNone : i - 1, i + 1 == list.size() ? kNone : i + 1};
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> candidates;
  const auto note = [&](std::size_t at) {
    if (at == kNone || list[at].right == kNone)
      return;
    const std::int32_t left = list[at].id;
    const std::int32_t right = list[list[at].right].id;
    if (const Merge* const merge = find(left, right))
      candidates.push({merge->rank, at, left, right, merge->joined});
  };
  for (std::size_t i = 0; i < list.size(); ++i)
    note(i);
  while (!candidates.empty()) {
    const Candidate c = candidates.top();
    candidates.pop();
    Symbol& left = list[c.at];
    if (left.gone || left.id != c.left || left.right == kNone || list[left.right].id != c.right)
      continue;
    Symbol& right = list[left.right];
    left.id = c.joined;
    left.right = right.right;
    right.gone = true;
    if (left.right != kNone)
      list[left.right].left = c.at;
    note(left.left);
    note(c.at);
  }
  std::vector<std::int32_t> joined;
  for (const Symbol& symbol : list) {
    if (!symbol.gone)
      joined.push_back(symbol.id);
  }
  return joined;
}

}  // namespace temper::actors
