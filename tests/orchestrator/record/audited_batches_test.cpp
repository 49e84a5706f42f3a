// The packed batches of the auditor.
#include "orchestrator/record/audited_batches.hpp"

#include "core/random.hpp"

#include <gtest/gtest.h>

#include <map>

namespace temper::orchestrator {
namespace {

/// Includes values that no scheduler produces: future versions, decreasing ids.
AuditedBatch random_batch(Random& random, std::uint64_t step) {
  AuditedBatch batch{step, {}, {}};
  if (random.below(2) == 0)
    batch.bound = random.below(300);
  for (std::uint64_t n = random.below(5); n > 0; --n) {
    const auto version = [&] { return random.chance(0.1) ? ~random.below(9) : random.below(1000); };
    AuditedBatch::Group g{random.below(1'000'000), version(), version(), {}, {}};
    if (random.chance(0.8))
      g.oldest = version();
    if (random.chance(0.8))
      g.newest = version();
    batch.groups.push_back(g);
  }
  return batch;
}

TEST(AuditedBatches, ComeBackAsTheyWereAlsoAfterAResume) {
  Random random(1, "batches");
  AuditedBatches packed;
  std::map<std::uint64_t, AuditedBatch> plain;
  std::uint64_t step = 5000;
  for (int i = 0; i < 2000; ++i) {
    if (random.chance(0.02)) {
      step -= std::min(step, random.below(30));
      packed.drop_from(step);
      plain.erase(plain.lower_bound(step), plain.end());
    }
    plain[step] = random_batch(random, step);
    packed.add(plain[step++]);
  }
  ASSERT_EQ(packed.size(), plain.size());
  for (const auto& [at, batch] : plain)
    ASSERT_EQ(packed.at(packed.find(at).value()), batch);
  EXPECT_EQ(packed.find(step), std::nullopt);
}

}  // namespace
}  // namespace temper::orchestrator
