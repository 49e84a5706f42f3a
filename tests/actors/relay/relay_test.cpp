// Relays over local sockets: a chain of workers, a lost worker, a worker without permission. This
// thread acts as the orchestrator.
#include "tests/actors/relay/relay_worker.hpp"

namespace temper::actors {
namespace {

using namespace std::chrono_literals;

constexpr PolicyVersion kRelayed(3);
constexpr std::size_t kRelayedSize = 1 << 20;

using Worker = RelayWorker;

class RelayTest : public testing::Test {
 protected:
  RelayTest() : image_(3 * kRelayedSize + 17) {
    for (std::size_t i = 0; i < image_.size(); ++i)
      image_[i] = static_cast<std::byte>(i * 31 + i / kRelayedSize);
    EXPECT_TRUE(for_each_chunk(kRelayed, image_, [this](WeightsChunk chunk) -> Status {
      chunks_.push_back(std::move(chunk));
      return {};
    }));
    handle_ = chunked_handle(kRelayed, image_);
  }
  void send(Worker& to, std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i)
      EXPECT_TRUE(to.take(chunks_[i]));
  }
  void feed(Worker& feeder, const Worker& child) {
    EXPECT_TRUE(feeder.take(FeedWeights{child.relay->address().key, true}));
  }
  void expect_image(Worker& worker) { worker.expect_image(image_); }

  std::vector<std::byte> image_;
  std::vector<WeightsChunk> chunks_;
  WeightsHandle handle_;
};

TEST_F(RelayTest, ForwardsAnImageAndPassesItToTheRoleOnceComplete) {
  Worker first, second, third;
  feed(first, second);
  feed(second, third);
  third.take(StageWeights{handle_, {second.relay->address()}});
  second.take(StageWeights{handle_, {first.relay->address()}});
  first.take(StageWeights{handle_});
  send(first, 0, chunks_.size());
  expect_image(first);
  expect_image(second);
  expect_image(third);
}

TEST_F(RelayTest, SendsTheChunksSoFarToALateWorker) {
  Worker first, late;
  first.take(StageWeights{handle_});
  send(first, 0, chunks_.size());
  expect_image(first);
  feed(first, late);
  late.take(StageWeights{handle_, {first.relay->address()}});
  expect_image(late);
}

TEST_F(RelayTest, FetchesTheRestFromTheOrchestratorIfTheSourceIsLost) {
  auto first = std::make_unique<Worker>();
  Worker second(1s);
  feed(*first, second);
  first->take(StageWeights{handle_});
  second.take(StageWeights{handle_, {first->relay->address()}});
  send(*first, 0, 2);
  first.reset();
  const auto asked = second.orchestrator.next();
  ASSERT_TRUE(asked && asked->is<FetchWeights>());
  const auto what = asked->decode<FetchWeights>();
  EXPECT_EQ(what->version, kRelayed);
  EXPECT_EQ(what->offset % kRelayedSize, 0U);
  EXPECT_LE(what->offset, 2 * kRelayedSize);
  send(second, what->offset / kRelayedSize, chunks_.size());
  expect_image(second);
}

TEST_F(RelayTest, FetchesTheRestFromTheNextSourceIfTheSourceIsLost) {
  Worker first;
  auto second = std::make_unique<Worker>();
  Worker third(1s);
  feed(first, *second);
  feed(first, third);
  feed(*second, third);
  first.take(StageWeights{handle_});
  third.take(StageWeights{handle_, {second->relay->address(), first.relay->address()}});
  second.reset();
  send(first, 0, chunks_.size());
  expect_image(third);
}

TEST_F(RelayTest, SendsNothingToAWorkerWithoutPermission) {
  Worker first;
  Worker unadmitted(1s);
  first.take(StageWeights{handle_});
  send(first, 0, chunks_.size());
  expect_image(first);
  unadmitted.take(StageWeights{handle_, {first.relay->address()}});
  const auto asked = unadmitted.orchestrator.next();
  ASSERT_TRUE(asked && asked->is<FetchWeights>());
  EXPECT_EQ(asked->decode<FetchWeights>()->offset, 0U);
}

TEST_F(RelayTest, SendsNothingAfterPermissionIsRevoked) {
  Worker first;
  Worker second(1s);
  feed(first, second);
  second.take(StageWeights{handle_, {first.relay->address()}});
  first.take(StageWeights{handle_});
  send(first, 0, chunks_.size());
  expect_image(second);
  EXPECT_TRUE(first.take(FeedWeights{second.relay->address().key, false}));
  expect_image(first);
  WeightsHandle next = handle_;
  next.version = PolicyVersion(4);
  second.take(StageWeights{next, {first.relay->address()}});
  const auto asked = second.orchestrator.next();
  ASSERT_TRUE(asked && asked->is<FetchWeights>());
  EXPECT_EQ(asked->decode<FetchWeights>()->version, PolicyVersion(4));
}

TEST_F(RelayTest, ReportsAnUnavailableImage) {
  Worker worker;
  handle_.checksum += 1;
  worker.take(StageWeights{handle_});
  send(worker, 0, chunks_.size());
  const auto said = worker.orchestrator.next();
  ASSERT_TRUE(said && said->is<WeightsStaged>());
  EXPECT_NE(said->decode<WeightsStaged>()->error.find("checksum of the image"), std::string::npos);
}

TEST_F(RelayTest, PassesImagesInMemoryOrInAFileToTheRole) {
  Worker worker;
  WeightsHandle shared = handle_;
  shared.fd = 5;
  EXPECT_FALSE(worker.take(StageWeights{shared}));
  WeightsHandle file = handle_;
  file.path = "/shared/3.safetensors";
  EXPECT_FALSE(worker.take(StageWeights{file}));
  EXPECT_FALSE(worker.take(CommitWeights{kRelayed}));
}

}  // namespace
}  // namespace temper::actors
