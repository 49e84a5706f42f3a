#include "orchestrator/pipeline/message_sizes.hpp"

#include "actors/transport/stream.hpp"
#include "core/files.hpp"
#include "orchestrator/pipeline/teachers.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace temper::orchestrator {
namespace {

constexpr double kPerResponse = 64;  ///< Ids, reward, lengths.
constexpr double kPerToken = 4;      ///< A token id, or a log-prob.

/// In double, so that products of large settings do not overflow.
Bytes whole(double bytes) {
  constexpr double kMost = 9e18;
  return Bytes(static_cast<Bytes::rep>(std::min(bytes, kMost)));
}

std::string amount(Bytes bytes) {
  const auto count = static_cast<double>(bytes.count());
  if (count < 1e6)
    return fmt::format("{:.1f} kB", count / 1e3);
  return count < 1e9 ? fmt::format("{:.1f} MB", count / 1e6)
                     : fmt::format("{:.2f} GB", count / 1e9);
}

std::optional<Bytes> number_in(const char* file) {
  const auto text = read_file(file);
  std::int64_t number = 0;
  if (!text || std::from_chars(text->data(), text->data() + text->size(), number).ec != std::errc())
    return std::nullopt;
  return Bytes(number);
}

}  // namespace

MessageSizes message_sizes(const PipelineConfig& c, Tokens longest_prompt) {
  const double responses =
      static_cast<double>(c.algorithm.groups_per_update) * c.algorithm.responses_per_group;
  const Tokens length =
      c.policy == actors::PolicyKind::Synthetic ? c.synthetic.tokens : c.sampling.max_new_tokens;
  const auto tokens = static_cast<double>(length.count());
  const double columns = (c.reference.replicas > 0 ? 3 : 2) +  // tokens, log-probs, reference
                         2.0 * c.algorithm.distillation_top_k;
  const double update =
      responses *
      (kPerToken * (columns * tokens + static_cast<double>(longest_prompt.count())) + kPerResponse);
  const double report = static_cast<double>(c.rollout.concurrency) * (2 * kPerToken * tokens + 64);
  const double payloads = (std::floor(c.staleness.bound) + 1) * update;
  const double actors = 1.0 + c.rollout.replicas + reference_count(c) + c.reward.replicas;
  const double windows = 2 * static_cast<double>(actors::kWindow.count()) * actors;
  return {.update = whole(update),
          .report = whole(std::min(report, payloads)),
          .payloads = whole(payloads),
          .head = whole(payloads + std::max(2 * update, payloads) + windows)};
}

std::optional<Bytes> memory_here() {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page = ::sysconf(_SC_PAGESIZE);
  std::optional<Bytes> least;
  if (pages > 0 && page > 0)
    least = Bytes(static_cast<Bytes::rep>(pages) * page);
  for (const char* file :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    const auto limit = number_in(file);
    if (limit && limit->count() > 0 && (!least || *limit < *least))
      least = limit;
  }
  return least;
}

std::optional<BrokenRule> check_head_memory(const MessageSizes& sizes,
                                            std::optional<Bytes> memory) {
  if (!memory || sizes.head <= *memory)
    return std::nullopt;
  return BrokenRule{
      {"algorithm.groups_per_update",
       "algorithm.responses_per_group",
       "sampling.max_new_tokens",
       "synthetic.tokens",
       "staleness.bound"},
      fmt::format("a batch takes {} and up to {} are outstanding: the orchestrator needs up to {}, "
                  "found {} of memory; lower this key, sampling.max_new_tokens or staleness.bound",
                  amount(sizes.update),
                  amount(sizes.payloads),
                  amount(sizes.head),
                  amount(*memory))};
}

std::string sizes_text(const MessageSizes& sizes) {
  const bool batch = sizes.update >= sizes.report;
  return fmt::format("largest message {} ({}), in pieces of 1 MiB; the orchestrator holds up to {}",
                     amount(sizes.largest()),
                     batch ? "trainer.train" : "rollout.generated",
                     amount(sizes.head));
}

}  // namespace temper::orchestrator
