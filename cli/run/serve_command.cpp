#include "cli/run/serve_command.hpp"

#include "cli/command/exit_code.hpp"
#include "cli/serve/run_files.hpp"
#include "cli/watch/rebuild.hpp"
#include "orchestrator/start/start_run.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <cstdio>
#include <memory>

namespace temper::cli {
namespace {

namespace fs = std::filesystem;

struct ServeOptions {
  std::vector<std::string> folders;
  std::string address;
};

int run_serve(const ServeOptions& options) {
  orchestrator::ignore_write_signals();
  // Before the thread is started, which inherits it: they are taken below.
  sigset_t stops;
  ::sigemptyset(&stops);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})
    ::sigaddset(&stops, signal);
  ::pthread_sigmask(SIG_BLOCK, &stops, nullptr);
  std::vector<fs::path> folders(options.folders.begin(), options.folders.end());
  for (const fs::path& folder : folders) {
    if (!fs::is_directory(folder)) {
      fmt::print(stderr, "temper: {} is no folder\n", folder.string());
      return kBadInput;
    }
  }
  for (const fs::path& run : find_runs(folders)) {
    if (Status made = provide_live_file(run); !made)
      fmt::print(stderr, "temper: warning: {}: {}\n", run.string(), made.error().context);
  }
  const auto server = serve(std::move(folders), options.address);
  if (!server) {
    return fail(server.error());
  }
  fmt::print("page at {}  (Ctrl-C ends it)\n", (*server)->url());
  std::fflush(stdout);
  int signal = 0;
  ::sigwait(&stops, &signal);
  return 0;
}

}  // namespace

Result<std::unique_ptr<Server>> serve(std::vector<fs::path> folders, const std::string& address) {
  ServerOptions options;
  options.folders = std::move(folders);
  if (!address.empty()) {
    TEMPER_TRY_STATUS(parse_address(address, options));
    return Server::start(std::move(options));
  }
  options.port = kUsualPort;
  auto server = Server::start(options);
  if (server)
    return server;
  options.port = 0;
  return Server::start(std::move(options));
}

Handler serve_command(Flags& flags) {
  const auto options = std::make_shared<ServeOptions>();
  options->folders = {};
  flags.arguments("runs", options->folders, "Folders of runs, or folders that hold some (runs/)");
  flags.text("--address", options->address, "ADDRESS:PORT or a port; otherwise 127.0.0.1:7878");
  return [options] { return run_serve(*options); };
}

}  // namespace temper::cli
