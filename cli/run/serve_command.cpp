#include "cli/run/serve_command.hpp"

#include "cli/command/exit_code.hpp"
#include "cli/serve/page_token.hpp"
#include "cli/serve/run_files.hpp"
#include "cli/watch/rebuild.hpp"
#include "orchestrator/start/start_run.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <memory>

namespace temper::cli {
namespace {

namespace fs = std::filesystem;

struct ServeOptions {
  std::vector<std::string> folders;
  std::string address;
  std::string token_file;
};

/// Builds missing live.json files of old runs, and warns about runs that are not shown.
void prepare(const std::vector<fs::path>& folders) {
  for (const UntrustedFolder& run : find_runs(folders)) {
    const std::string path = run.path().string();
    struct stat status {};
    // Other users' folders are not written to: a symbolic link in them could point anywhere.
    if (::stat(path.c_str(), &status) != 0 || status.st_uid != ::geteuid())
      continue;
    if (Status made = provide_live_file(path); !made)
      fmt::print(stderr, "temper: warning: {}: {}\n", path, made.error().context);
  }
  std::error_code error;
  for (const fs::path& folder : folders) {
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
      std::error_code gone;
      if (it->is_symlink(gone) && is_run(it->path())) {
        fmt::print(stderr,
                   "temper: warning: {0} is a symbolic link and is not shown; to show it: temper "
                   "serve {0}\n",
                   it->path().string());
      }
    }
  }
}

int run_serve(const ServeOptions& options) {
  orchestrator::ignore_write_signals();
  std::vector<fs::path> folders(options.folders.begin(), options.folders.end());
  for (const fs::path& folder : folders) {
    if (!fs::is_directory(folder)) {
      fmt::print(stderr,
                 "temper: {} is not a folder; expected a run folder or a folder of runs\n",
                 folder.string());
      return kBadInput;
    }
  }
  std::string token;
  if (!options.token_file.empty()) {
    auto read = token_in(options.token_file);
    if (!read)
      return fail(read.error());
    token = *std::move(read);
  }
  prepare(folders);
  // Blocked before the server's thread starts, which inherits the mask; sigwait() below takes them.
  // Not blocked earlier, so that Ctrl-C can interrupt prepare() on a long log.
  sigset_t stops;
  ::sigemptyset(&stops);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})
    ::sigaddset(&stops, signal);
  ::pthread_sigmask(SIG_BLOCK, &stops, nullptr);
  const auto server = serve(std::move(folders), options.address, std::move(token));
  if (!server) {
    return fail(server.error());
  }
  fmt::print("page at {}  (Ctrl-C stops the server)\n", (*server)->url());
  std::fflush(stdout);
  int signal = 0;
  ::sigwait(&stops, &signal);
  return 0;
}

}  // namespace

Result<std::unique_ptr<Server>> serve(std::vector<fs::path> folders,
                                      const std::string& address,
                                      std::string token) {
  ServerOptions options;
  options.folders = std::move(folders);
  options.token = std::move(token);
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
  flags.arguments("runs", options->folders, "Run folders, or folders of runs such as runs/");
  flags.text("--address", options->address, "ADDRESS:PORT or a port (default: 127.0.0.1:7878)");
  flags.text("--token-file",
             options->token_file,
             "File with the access token of the page; created if missing (default: a new token at "
             "each start)");
  return [options] { return run_serve(*options); };
}

}  // namespace temper::cli
