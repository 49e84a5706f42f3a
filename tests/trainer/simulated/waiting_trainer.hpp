// Batches of simulated trainers, and a trainer that waits for the data of one before a step.
#pragma once

#include "tests/support/simulated_drive.hpp"
#include "trainer/simulated/trainer_actor.hpp"

#include <gtest/gtest.h>

namespace temper::trainer {

/// `groups` of 4 responses, each of 1024 + 1024 tokens.
inline actors::CountedTrain batch(std::uint64_t version = 5,
                                  std::uint64_t groups = 16,
                                  std::uint64_t dispatched = 5) {
  actors::CountedTrain work;
  work.lease = LeaseId(version + 1);
  work.certificate.step = PolicyVersion(version);
  work.certificate.bound = 2;
  for (std::uint64_t g = 0; g < groups; ++g) {
    work.certificate.groups.push_back({GroupId(g), PolicyVersion(dispatched)});
    for (int i = 0; i < 4; ++i)
      work.items.push_back({GroupId(g), Tokens(1024), Tokens(1024), i % 2 == 0 ? 1.0 : 0.0});
  }
  return work;
}

/// Gradients of the first half of its groups.
inline actors::CountedPrepare half_of_batch() {
  actors::CountedPrepare work;
  work.lease = LeaseId(9);
  work.step = PolicyVersion(5);
  work.items = batch().items;
  work.items.resize(32);
  return work;
}

class WaitingTrainer : public ::testing::Test {
 protected:
  explicit WaitingTrainer(const actors::SimulationSettings& settings)
      : trainer_(settings, PolicyVersion(5)), d_(trainer_) {
    EXPECT_TRUE(d_.start());
    EXPECT_TRUE(d_.run());
  }
  actors::Usage last_usage() {
    EXPECT_TRUE(d_.send(actors::Stop{}));
    return d_.all<actors::Activity>().back().second.usage.value_or(actors::Usage{});
  }

  SimulatedTrainer trainer_;
  actors::testing::Driven d_;
};

}  // namespace temper::trainer
