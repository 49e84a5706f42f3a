#include "cli/run/fsck_command.hpp"

#include "cli/command/exit_code.hpp"
#include "core/json.hpp"
#include "orchestrator/fsck/fsck.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <memory>

namespace temper::cli {

int run_fsck(const FsckOptions& options) {
  const auto report = orchestrator::check_run(
      options.run_dir, options.repair ? orchestrator::Repair::Yes : orchestrator::Repair::No);
  if (!report) {
    return fail(report.error());
  }
  const int code = !report->resumable ? kLost : report->whole() ? kDone : kFound;
  if (options.json) {
    fmt::print("{}\n", to_json(*report, JsonStyle::Pretty));
    return code;
  }
  for (const std::string& line : report->repaired)
    fmt::print("repaired   {}\n", line);
  for (const orchestrator::CheckedFile& file : report->files) {
    if (file.state == orchestrator::FileState::Unchecked)
      continue;
    fmt::print("{:<10} {}{}{}\n",
               name_of(file.state),
               file.name,
               file.what.empty() ? "" : ": ",
               file.what);
  }
  fmt::print("{}\n{}\n", report->next, report->whole() ? "intact" : "DAMAGED");
  return code;
}

Handler fsck_command(Flags& flags) {
  const auto options = std::make_shared<FsckOptions>();
  flags.argument("run", options->run_dir, "Run folder");
  flags.flag("--repair",
             options->repair,
             "Move damaged data aside (nothing is deleted) and rebuild derived files");
  flags.json(options->json);
  return [options] { return run_fsck(*options); };
}

}  // namespace temper::cli
