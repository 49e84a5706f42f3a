#include "cli/run/watch_command.hpp"

#include "cli/command/exit_code.hpp"
#include "cli/serve/run_files.hpp"
#include "cli/view/terminal_view.hpp"
#include "core/clock.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <memory>

namespace temper::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kWatchPeriodMs = 500;

int run_watch(const std::string& folder, bool plain) {
  const fs::path run = fs::absolute(folder).lexically_normal();
  if (!is_run(run)) {
    fmt::print(stderr, "temper: {} holds no run (no events.log)\n", run.string());
    return kBadInput;
  }
  RunFiles files(run.filename(), run);
  const RealClock clock;
  ViewOptions options = detect_view(STDOUT_FILENO, plain ? OutputForm::Plain : OutputForm::Auto);
  TerminalView view(options, clock);
  for (;;) {
    files.update();
    if (files.take_news() && files.live())
      view.show(frame_of(*files.live()));
    if (files.live() && files.state() != RunState::Running)
      break;
    if (!files.live()) {
      fmt::print(
          stderr, "temper: {} has no live.json yet; `temper report` reads its log\n", run.string());
      return kBadInput;
    }
    ::poll(nullptr, 0, kWatchPeriodMs);
  }
  const orchestrator::Summary& s = files.live()->summary;
  if (files.state() == RunState::Lost) {
    fmt::print("the run's process is gone; resume it with: temper run --resume {}\n", folder);
    return kFailed;
  }
  fmt::print("{} after {} steps{}\n",
             name_of(files.state()),
             s.steps,
             s.reason.empty() ? "" : ": " + s.reason);
  return 0;
}

}  // namespace

Handler watch_command(Flags& flags) {
  const auto run = std::make_shared<std::string>();
  const auto plain = std::make_shared<bool>(false);
  flags.argument("run", *run, "Run folder");
  flags.flag("--plain", *plain, "Print plain lines even on a terminal");
  return [run, plain] { return run_watch(*run, *plain); };
}

}  // namespace temper::cli
