#include "actors/model_folder/gguf_rows.hpp"

#include <algorithm>
#include <vector>

namespace temper::actors {
namespace {

/// Row i of a head becomes row `to(i)`.
template <class F>
void move_rows(std::span<float> values, std::int64_t rows, std::int64_t head, F&& to) {
  const std::size_t width = values.size() / static_cast<std::size_t>(rows);
  const auto size = static_cast<std::size_t>(head);
  std::vector<float> one(size * width);
  for (std::size_t begin = 0; begin < values.size(); begin += one.size()) {
    const std::span<float> here = values.subspan(begin, one.size());
    std::ranges::copy(here, one.begin());
    for (std::size_t i = 0; i < size; ++i) {
      std::ranges::copy(std::span(one).subspan(i * width, width),
                        here.subspan(to(i) * width, width).begin());
    }
  }
}

}  // namespace

void pair_halves(std::span<float> values, std::int64_t rows, std::int64_t head) {
  const std::size_t half = static_cast<std::size_t>(head) / 2;
  move_rows(
      values, rows, head, [&](std::size_t i) { return i < half ? 2 * i : 2 * (i - half) + 1; });
}

void part_pairs(std::span<float> values, std::int64_t rows, std::int64_t head) {
  const std::size_t half = static_cast<std::size_t>(head) / 2;
  move_rows(values, rows, head, [&](std::size_t i) { return i / 2 + (i % 2) * half; });
}

}  // namespace temper::actors
