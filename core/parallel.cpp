#include "core/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace temper {

int worker_threads(int wanted) {
  return wanted > 0 ? wanted : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

void for_each_index(std::size_t count, int threads, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next{0};
  const auto loop = [&] {
    for (std::size_t i = next++; i < count; i = next++)
      work(i);
  };
  std::vector<std::jthread> helpers;
  for (std::size_t i = 1; i < std::min(static_cast<std::size_t>(std::max(1, threads)), count); ++i)
    helpers.emplace_back(loop);
  loop();
}

}  // namespace temper
