// RehearsalHost without the program that runs actors; whole runs: tests/system/rehearsal_test.cpp.
#include "orchestrator/run/virtual/rehearsal_host.hpp"

#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include <array>

namespace temper::orchestrator {
namespace {

TEST(RehearsalHost, NamesAWorkerProgramThatIsMissingAndEnds) {
  boost::asio::io_context io;
  const auto log_of = [](std::string_view name) {
    return std::filesystem::path(::testing::TempDir()) / name;
  };
  const auto host = RehearsalHost::create(
      io, {{"trainer"}, "/nowhere/temper-worker", log_of, {}}, Log::discard());
  ASSERT_TRUE(host) << host.error().context;
  const std::array actors{ActorId(0)};
  ASSERT_TRUE((*host)->launch(actors[0], {}));
  std::vector<ActorHost::Arrival> arrivals;
  const Status advanced = (*host)->advance(actors, Time{}, arrivals);
  ASSERT_FALSE(advanced);
  EXPECT_NE(advanced.error().context.find("/nowhere/temper-worker"), std::string::npos)
      << advanced.error().context;
  (*host)->finish(actors, Time{}, arrivals);
  EXPECT_TRUE(arrivals.empty());
}

}  // namespace
}  // namespace temper::orchestrator
