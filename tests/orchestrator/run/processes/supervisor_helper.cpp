// A parent that the supervisor's test kills: starts two children, writes their process ids to the
// file given, and waits. Usage: supervisor_helper FIFO LOG
#include "actors/asio/asio.hpp"
#include "orchestrator/run/processes/supervisor.hpp"

#include <fmt/format.h>

#include <fstream>

int main(int argc, char** argv) {
  if (argc != 3)
    return 2;
  boost::asio::io_context io;
  temper::orchestrator::Supervisor supervisor(io, [](const auto&) {});
  std::string pids;
  for (const char* name : {"a", "b"}) {
    const auto pid = supervisor.start(
        {.name = name, .command = {"/bin/sleep", "600"}, .environment = {}, .log = argv[2]});
    if (!pid)
      return 3;
    pids += fmt::format("{} ", *pid);
  }
  std::ofstream(argv[1]) << pids << std::endl;
  const auto forever = boost::asio::make_work_guard(io);
  io.run();
}
