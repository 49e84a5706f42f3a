// The relay of a trainer's worker over local sockets: it serves the images that the trainer
// publishes. This thread acts as the trainer and as the orchestrator.
#include "actors/protocol/catalog.hpp"
#include "actors/relay/upstream.hpp"
#include "tests/actors/relay/relay_worker.hpp"

#include <poll.h>

namespace temper::actors {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kOneChunk = 1 << 20;

std::vector<std::byte> trained_image(std::size_t size, std::uint64_t version) {
  std::vector<std::byte> image(size);
  for (std::size_t i = 0; i < size; ++i)
    image[i] = static_cast<std::byte>(i * 31 + i / kOneChunk + version);
  return image;
}

/// A trainer's worker.
struct TrainerWorker : RelayWorker {
  /// Publishes an image as a trainer that shares memory does. Returns the messages that leave this
  /// worker.
  std::vector<IncomingMessage> publish(const std::vector<std::byte>& image,
                                       std::uint64_t version = 3) {
    published.push_back(SharedBuffer::create(PolicyVersion(version), image).value());
    return said_of(TrainerReady{published.back().handle()});
  }
  template <class M>
  std::vector<IncomingMessage> said_of(const M& message) {
    std::vector<IncomingMessage> said;
    relay->publish(outgoing(message),
                   [&](OutgoingMessage m) { said.push_back(IncomingMessage::from(std::move(m))); });
    return said;
  }
  std::vector<SharedBuffer> published;
};

/// The only message: an announcement.
WeightsHandle announced(const std::vector<IncomingMessage>& said) {
  EXPECT_EQ(said.size(), 1U);
  return said.front().decode<TrainerReady>()->weights;
}

void feed(TrainerWorker& trainer, const std::string& key) {
  EXPECT_TRUE(trainer.take(FeedWeights{key, true}));
}

TEST(TrainerRelay, AnnouncesAnImageAsSentOnRequest) {
  TrainerWorker trainer;
  const auto image = trained_image(3 * kOneChunk, 3);
  const WeightsHandle handle = announced(trainer.publish(image));
  EXPECT_TRUE(handle.on_request);
  EXPECT_LT(handle.fd, 0);
  EXPECT_EQ(handle.checksum, chunked_handle(PolicyVersion(3), image).checksum);
  EXPECT_EQ(handle.bytes, Bytes(3 * kOneChunk));
}

TEST(TrainerRelay, SendsAnImageToTheFirstWorkerWhichForwardsIt) {
  TrainerWorker trainer;
  RelayWorker first, second;
  const auto image = trained_image((3 << 20) + 17, 3);
  const WeightsHandle handle = announced(trainer.publish(image));
  feed(trainer, first.relay->address().key);
  EXPECT_TRUE(first.take(FeedWeights{second.relay->address().key, true}));
  second.take(StageWeights{handle, {first.relay->address()}});
  first.take(StageWeights{handle, {trainer.relay->address()}});
  first.expect_image(image);
  second.expect_image(image);
}

TEST(TrainerRelay, SendsTheOrchestratorTheRequestedChunks) {
  TrainerWorker trainer;
  const auto image = trained_image((3 << 20) + 17, 3);
  const WeightsHandle handle = announced(trainer.publish(image));
  EXPECT_TRUE(trainer.take(FetchWeights{handle.version, handle.checksum, 2 * kOneChunk}));
  auto assembler = ChunkAssembler::start(handle, kLargestImage).value();
  for (const std::uint64_t offset : {2 * kOneChunk, 3 * kOneChunk}) {
    const auto said = trainer.orchestrator.next();
    ASSERT_TRUE(said && said->is<WeightsChunk>());
    EXPECT_EQ(said->decode<WeightsChunk>()->offset, offset);
    EXPECT_TRUE(assembler.add(*said->decode<WeightsChunk>()));
  }
}

TEST(TrainerRelay, SendsAnImageOfOneChunkWithItsAnnouncement) {
  TrainerWorker trainer;
  const auto image = trained_image(kOneChunk, 3);
  const auto said = trainer.publish(image);
  ASSERT_EQ(said.size(), 2U);
  const WeightsHandle handle = said[0].decode<TrainerReady>()->weights;
  EXPECT_FALSE(handle.on_request);
  EXPECT_LT(handle.fd, 0);
  EXPECT_EQ(said[1].decode<WeightsChunk>()->data, image);
}

TEST(TrainerRelay, PassesOtherMessagesOnUnchanged) {
  TrainerWorker trainer;
  EXPECT_TRUE(trainer.said_of(Ready{}).at(0).is<Ready>());
  const WeightsHandle chunks = chunked_handle(PolicyVersion(1), trained_image(2 * kOneChunk, 1));
  const WeightsHandle passed = announced(trainer.said_of(TrainerReady{chunks}));
  EXPECT_FALSE(passed.on_request) << "the role sends the chunks itself";
  EXPECT_EQ(passed.checksum, chunks.checksum);
}

TEST(TrainerRelay, ReportsAnImageThatItCannotMap) {
  TrainerWorker trainer;
  WeightsHandle handle = chunked_handle(PolicyVersion(1), trained_image(2 * kOneChunk, 1));
  handle.pid = 1;
  handle.fd = 1 << 20;
  const auto said = trainer.said_of(TrainerReady{handle});
  ASSERT_EQ(said.size(), 1U);
  ASSERT_TRUE(said[0].is<Failed>());
  EXPECT_NE(said[0].decode<Failed>()->reason.find("cannot publish weights"), std::string::npos);
}

TEST(TrainerRelay, KeepsTheTwoNewestImages) {
  TrainerWorker trainer;
  RelayWorker late, later;
  std::vector<WeightsHandle> handles;
  std::vector<std::vector<std::byte>> images;
  for (const std::uint64_t version : {3U, 4U, 5U}) {
    images.push_back(trained_image(2 * kOneChunk, version));
    handles.push_back(announced(trainer.publish(images.back(), version)));
  }
  feed(trainer, late.relay->address().key);
  feed(trainer, later.relay->address().key);
  late.take(StageWeights{handles[1], {trainer.relay->address()}});
  late.expect_image(images[1]);
  later.take(StageWeights{handles[0], {trainer.relay->address()}});
  const auto asked = later.orchestrator.next();
  ASSERT_TRUE(asked && asked->is<FetchWeights>()) << "the trainer refused at once";
  later.take(StageWeights{handles[2], {trainer.relay->address()}});
  later.expect_image(images[2]);
}

/// Receives until `done`. Fails the test after a timeout.
template <class F>
void receive_until(Upstream& upstream, std::vector<WeightsChunk>& chunks, F done) {
  const RealClock clock;
  while (!done()) {
    ASSERT_LT(clock.now(), Time(test::kPatience));
    const Upstream::TurnResult result = upstream.turn();
    for (const IncomingMessage& message : result.messages) {
      ASSERT_TRUE(message.is<WeightsChunk>());
      chunks.push_back(*message.decode<WeightsChunk>());
    }
    if (result.messages.empty() && !result.sent) {
      pollfd item{.fd = *upstream.fd(), .events = POLLIN, .revents = 0};
      ::poll(&item, 1, 5);
    }
  }
}

/// The image is much larger than what is in flight to a worker that does not read.
TEST(TrainerRelay, KeepsAnImageThatIsBeingFetched) {
  constexpr std::size_t kChunks = 64;
  TrainerWorker trainer;
  const auto image = trained_image(kChunks * kOneChunk, 3);
  const WeightsHandle handle = announced(trainer.publish(image));
  const KeyPair own = KeyPair::create();
  feed(trainer, own.open);
  Upstream slow(own, TransportConfig{}, kNoLog);
  ASSERT_TRUE(slow.ask(trainer.relay->address(), {handle.version, handle.checksum, 0}));
  std::vector<WeightsChunk> chunks;
  receive_until(slow, chunks, [&] { return !chunks.empty(); });
  ASSERT_LT(chunks.size(), kChunks);
  WeightsHandle newest;
  for (const std::uint64_t version : {4U, 5U, 6U})
    newest = announced(trainer.publish(trained_image(2 * kOneChunk, version), version));
  EXPECT_TRUE(trainer.take(FetchWeights{handle.version, handle.checksum, 0}));
  EXPECT_TRUE(trainer.take(FetchWeights{newest.version, newest.checksum, 0}));
  const auto said = trainer.orchestrator.next();
  ASSERT_TRUE(said && said->is<WeightsChunk>());
  EXPECT_EQ(said->decode<WeightsChunk>()->version, newest.version)
      << "the orchestrator has forgotten the older image";
  receive_until(slow, chunks, [&] { return chunks.size() == kChunks; });
  auto assembler = ChunkAssembler::start(handle, kLargestImage).value();
  for (const WeightsChunk& chunk : chunks)
    ASSERT_TRUE(assembler.add(chunk));
  EXPECT_EQ(std::move(assembler).take().value(), image);
}

}  // namespace
}  // namespace temper::actors
