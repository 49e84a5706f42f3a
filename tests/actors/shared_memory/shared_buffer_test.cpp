#include "actors/shared_memory/shared_buffer.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace temper::actors {
namespace {

constexpr PolicyVersion kVersion(7);

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

SharedBuffer publish(std::string_view text) {
  return SharedBuffer::create(kVersion, bytes_of(text)).value();
}

bool equal(std::span<const std::byte> a, std::string_view b) {
  return std::ranges::equal(a, bytes_of(b));
}

TEST(SharedBuffer, ReadersKeepTheBytesAfterTheWriterIsGone) {
  std::optional<MappedBuffer> reader;
  {
    const SharedBuffer writer = publish("weights");
    EXPECT_EQ(writer.handle().bytes, Bytes(7));
    EXPECT_EQ(writer.handle().pid, ::getpid());
    auto opened = MappedBuffer::open(writer.handle());
    ASSERT_TRUE(opened) << opened.error().context;
    reader = *std::move(opened);
  }
  EXPECT_TRUE(equal(reader->bytes(), "weights"));
}

TEST(SharedBuffer, CanBeReadByAnotherProcess) {
  const std::string image(3 << 20, 'w');
  const SharedBuffer writer = publish(image);
  const pid_t pid = ::fork();
  if (pid == 0) {
    const auto reader = MappedBuffer::open(writer.handle());
    ::_exit(reader && equal(reader->bytes(), image) ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
}

TEST(SharedBuffer, IsTheSameWhenItIsWrittenInParts) {
  std::string image;
  for (int i = 0; i < 1000; ++i)
    image += std::to_string(i);
  auto parts = SharedBuffer::Writer::create(kVersion).value();
  for (std::size_t at = 0, size = 0; at < image.size(); at += size, size = 2 * size + 1)
    ASSERT_TRUE(parts.append(bytes_of(std::string_view(image).substr(at, size))));
  const SharedBuffer writer = std::move(parts).finish().value();
  EXPECT_EQ(writer.handle().checksum, publish(image).handle().checksum);
  EXPECT_TRUE(equal(MappedBuffer::open(writer.handle()).value().bytes(), image));
}

TEST(SharedBuffer, AcceptsAnEmptyImage) {
  const SharedBuffer writer = publish("");
  EXPECT_TRUE(MappedBuffer::open(writer.handle()).value().bytes().empty());
}

TEST(SharedBuffer, CannotBeChangedOrShrunk) {
  const SharedBuffer writer = publish("weights");
  const int fd = writer.handle().fd;
  EXPECT_EQ(::ftruncate(fd, 1), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(::pwrite(fd, "x", 1, 0), -1);
  EXPECT_EQ(errno, EPERM);
}

TEST(SharedBuffer, NamesTheNextStepIfTheWriterIsGone) {
  WeightsHandle handle;
  {
    const SharedBuffer writer = publish("weights");
    handle = writer.handle();
  }
  const auto reader = MappedBuffer::open(handle);
  ASSERT_FALSE(reader);
  EXPECT_EQ(reader.error().code, ErrorCode::Unavailable);
  EXPECT_NE(reader.error().context.find("weights of version 7 in process"), std::string::npos);
  EXPECT_NE(reader.error().context.find("publish them again"), std::string::npos);
}

TEST(SharedBuffer, AReusedDescriptorIsNotMistakenForWeights) {
  WeightsHandle handle;
  {
    const SharedBuffer writer = publish("weights");
    handle = writer.handle();
  }
  const int file = ::open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(file, handle.fd) << "the system reuses the lowest free number";
  EXPECT_EQ(MappedBuffer::open(handle).error().code, ErrorCode::Unavailable);
  ::close(file);

  const int unsealed = ::memfd_create("other", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_EQ(unsealed, handle.fd);
  ASSERT_EQ(::ftruncate(unsealed, handle.bytes.count()), 0);
  EXPECT_EQ(MappedBuffer::open(handle).error().code, ErrorCode::Unavailable);
  ::close(unsealed);

  const SharedBuffer other = publish("WEIGHTS");
  ASSERT_EQ(other.handle().fd, handle.fd);
  EXPECT_EQ(MappedBuffer::open(handle).error().code, ErrorCode::Corrupt) << "the checksum differs";
  const SharedBuffer longer = publish("weights and more");
  handle.fd = longer.handle().fd;
  EXPECT_EQ(MappedBuffer::open(handle).error().code, ErrorCode::Corrupt) << "the size differs";
}

TEST(SharedBuffer, RejectsAHandleWithoutMemory) {
  EXPECT_FALSE(MappedBuffer::open({}));
  EXPECT_FALSE(MappedBuffer::open(
      {.version = kVersion, .bytes = Bytes(-1), .checksum = 0, .pid = ::getpid(), .fd = 0}));
}

}  // namespace
}  // namespace temper::actors
