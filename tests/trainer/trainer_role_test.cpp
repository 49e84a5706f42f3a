// Batches that the trainer rejects before a step, because their certificate is not valid for them.
#include "trainer/trainer_role.hpp"

#include "actors/shared_memory/shared_buffer.hpp"

#include <gtest/gtest.h>

namespace temper::trainer {
namespace {

using actors::IncomingMessage;
using actors::OutgoingMessage;
using actors::Train;

/// Counts steps and keeps no other state.
class CountingEngine : public Engine {
 public:
  explicit CountingEngine(int& updates) : updates_(updates) {}
  Status prepare(std::span<const TrainSample>) override { return {}; }
  Result<UpdateMetrics> update(std::span<const TrainSample>) override {
    ++updates_;
    return UpdateMetrics{};
  }
  Status publish(const ImageWriter& write) const override {
    return write(std::as_bytes(std::span(std::string_view("weights"))));
  }
  Status save(const std::filesystem::path&) const override { return {}; }
  Status load(const std::filesystem::path&) override { return {}; }
  Status offload() override { return {}; }
  Status onload() override { return {}; }
  TrainerMemory memory() const override { return {}; }

 private:
  int& updates_;
};

/// Keeps the ages of the tokens of a batch.
class TokenAges final : public CountingEngine {
 public:
  TokenAges(int& updates, std::vector<std::vector<std::int32_t>>& ages)
      : CountingEngine(updates), ages_(ages) {}
  Result<UpdateMetrics> update(std::span<const TrainSample> batch) override {
    for (const TrainSample& sample : batch)
      ages_.push_back(sample.ages);
    return CountingEngine::update(batch);
  }

 private:
  std::vector<std::vector<std::int32_t>>& ages_;
};

/// Before it publishes, counts the earlier images that a reader can still map.
class CountingImages final : public CountingEngine {
 public:
  CountingImages(int& updates, const std::vector<actors::WeightsHandle>& published, int& readable)
      : CountingEngine(updates), published_(published), readable_(readable) {}
  Status publish(const ImageWriter& write) const override {
    readable_ = 0;
    for (const actors::WeightsHandle& handle : published_)
      readable_ += actors::MappedBuffer::open(handle) ? 1 : 0;
    const std::string weights = "weights of " + std::to_string(published_.size());
    return write(std::as_bytes(std::span(weights)));
  }

 private:
  const std::vector<actors::WeightsHandle>& published_;
  int& readable_;
};

/// A trainer at version 5; batches of two groups of two responses, bound 2.
class Certificates : public ::testing::Test {
 protected:
  static Train batch() {
    Train work;
    work.lease = LeaseId(1);
    work.certificate = {
        PolicyVersion(5), 2, {{GroupId(7), PolicyVersion(3)}, {GroupId(8), PolicyVersion(5)}}};
    for (const auto& entry : work.certificate.groups) {
      for (int k = 0; k < 2; ++k) {
        auto& item = work.items.emplace_back();
        item.group = entry.group;
        item.prompt = item.response = {1};
        item.logprobs = {-1};
        item.first_version = entry.dispatched;
      }
    }
    return work;
  }

  /// The error of a rejected batch; empty: it was trained.
  template <class Change>
  std::string refused(Change change) {
    int updates = 0;
    TrainerRole trainer(
        std::make_unique<CountingEngine>(updates), PolicyVersion(5), Publication::Chunks, clock_);
    int trained = 0;
    actors::Outbox out(
        [&](const OutgoingMessage& m) { trained += m.tag == actors::Trained::kTag; });
    Train work = batch();
    change(work);
    const Status status = trainer.on_message(IncomingMessage::from(actors::outgoing(work)), out);
    EXPECT_EQ(updates, status ? 1 : 0);
    EXPECT_EQ(trained, status ? 1 : 0);
    return status ? "" : status.error().context;
  }

  ManualClock clock_;
};

TEST_F(Certificates, ABatchThatItsCertificateVouchesForIsTrained) {
  EXPECT_EQ(refused([](Train&) {}), "");
}

TEST_F(Certificates, AnotherVersionIsRefused) {
  EXPECT_EQ(refused([](Train& t) { t.certificate.step = PolicyVersion(6); }),
            "certificate rejected: the batch is for a step from version 6, but the trainer has "
            "version 5");
}

TEST_F(Certificates, AGroupBeyondTheBoundIsRefused) {
  EXPECT_EQ(refused([](Train& t) { t.certificate.bound = 1; }),
            "certificate rejected: group 7 was dispatched with version 3; at version 5 it exceeds "
            "the staleness bound 1");
  EXPECT_EQ(refused([](Train& t) { t.certificate.groups[0].dispatched = PolicyVersion(6); }),
            "certificate rejected: group 7 was dispatched with version 6; at version 5 it exceeds "
            "the staleness bound 2");
}

TEST_F(Certificates, GroupsThatAreNotThoseOfTheBatchAreRefused) {
  EXPECT_EQ(refused([](Train& t) { t.items[3].group = GroupId(9); }),
            "certificate rejected: group 9 is not in the certificate");
  EXPECT_EQ(refused([](Train& t) { t.items.resize(2); }),
            "certificate rejected: group 8 is in the certificate, but not in the batch");
  EXPECT_EQ(refused([](Train& t) {
              t.certificate.groups[1].group = GroupId(7);
              t.items.resize(2);
            }),
            "certificate rejected: group 7 is in the certificate twice");
}

TEST_F(Certificates, AResponseBegunWhenItsCertificateSaysItWasNotIsRefused) {
  EXPECT_EQ(refused([](Train& t) { t.items[2].first_version = PolicyVersion(4); }),
            "certificate rejected: a response of group 8 began with version 4, older than version "
            "5 in its certificate");
  EXPECT_EQ(refused([](Train& t) { t.items[0].first_version = PolicyVersion(6); }),
            "certificate rejected: a response of group 7 began with version 6, newer than version "
            "5 of this step");
}

TEST_F(Certificates, AResponseWithoutTokensIsRefusedByItsNumber) {
  EXPECT_EQ(refused([](Train& t) {
              t.items[1].id = ResponseId(23);
              t.items[1].response.clear();
              t.items[1].logprobs.clear();
              t.items[1].first_version = PolicyVersion(0);
            }),
            "certificate rejected: response 23 of group 7 has no tokens");
}

TEST_F(Certificates, GradientsAreComputedBeforeThemOfTheVersionThatIsUpdatedAlone) {
  int updates = 0;
  TrainerRole trainer(
      std::make_unique<CountingEngine>(updates), PolicyVersion(5), Publication::Chunks, clock_);
  std::vector<LeaseId> prepared;
  actors::Outbox out([&](const OutgoingMessage& m) {
    if (m.tag == actors::Prepared::kTag)
      prepared.push_back(LeaseId(9));
  });
  const auto ask = [&](PolicyVersion step) {
    const actors::Prepare work{LeaseId(9), step, batch().items};
    return trainer.on_message(IncomingMessage::from(actors::outgoing(work)), out);
  };
  EXPECT_TRUE(ask(PolicyVersion(5)));
  EXPECT_EQ(prepared.size(), 1U);
  const Status refused = ask(PolicyVersion(4));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().context,
            "gradients from version 4 are requested, but the trainer has version 5");
  EXPECT_EQ(prepared.size(), 1U);
  EXPECT_EQ(updates, 0);
}

TEST_F(Certificates, BesideAnImageThatIsWrittenOneIsHeld) {
  int updates = 0;
  int readable = 0;
  std::vector<actors::WeightsHandle> published;
  TrainerRole trainer(std::make_unique<CountingImages>(updates, published, readable),
                      PolicyVersion(5),
                      Publication::SharedMemory,
                      clock_);
  actors::Outbox out([&](const OutgoingMessage& m) {
    if (m.tag == actors::TrainerReady::kTag)
      published.push_back(IncomingMessage::from(m).decode<actors::TrainerReady>()->weights);
    if (m.tag == actors::Trained::kTag)
      published.push_back(IncomingMessage::from(m).decode<actors::Trained>()->weights);
  });
  ASSERT_TRUE(trainer.start(out));
  for (const std::uint64_t version : {5U, 6U, 7U}) {
    Train work;
    work.certificate = {PolicyVersion(version), 0, {}};
    ASSERT_TRUE(trainer.on_message(IncomingMessage::from(actors::outgoing(work)), out));
    EXPECT_EQ(readable, 1) << version;
  }
  EXPECT_EQ(published.size(), 4U);
}

TEST_F(Certificates, ATokenIsAsOldAsTheVersionThatSampledIt) {
  int updates = 0;
  std::vector<std::vector<std::int32_t>> ages;
  TrainerRole trainer(
      std::make_unique<TokenAges>(updates, ages), PolicyVersion(5), Publication::Chunks, clock_);
  Train work = batch();
  Train::Item& changed = work.items.front();
  changed.response = {1, 2, 3};
  changed.logprobs = {-1, -1, -1};
  changed.segments = {{PolicyVersion(3), Tokens(1)}, {PolicyVersion(5), Tokens(2)}};
  actors::Outbox out([](const OutgoingMessage&) {});
  ASSERT_TRUE(trainer.on_message(IncomingMessage::from(actors::outgoing(work)), out));
  using Ages = std::vector<std::int32_t>;
  EXPECT_EQ(ages, (std::vector<Ages>{{2, 0, 0}, {2}, {0}, {0}})) << "the second by its group";
}

}  // namespace
}  // namespace temper::trainer
