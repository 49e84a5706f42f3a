// Rebuilding the files of a run that has only its log.
#include "cli/watch/rebuild.hpp"

#include "cli/serve/run_files.hpp"
#include "core/files.hpp"
#include "orchestrator/record/event_log.hpp"
#include "orchestrator/scheduler/state/config.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

namespace temper::cli {
namespace {

/// How a run with these records is shown.
RunState shown(const std::vector<orchestrator::Record>& records) {
  const test::TemporaryFolder folder;
  EXPECT_TRUE(write_file_atomically(folder / "config.yaml", "name: first\n"));
  auto log = orchestrator::EventLog::create(folder / "events.log");
  EXPECT_TRUE(log);
  for (const orchestrator::Record& record : records)
    EXPECT_TRUE(log->append(record));
  const Status made = provide_live_file(folder.path());
  EXPECT_TRUE(made) << made.error().context;
  RunFiles files("first", folder.path());
  files.update();
  EXPECT_TRUE(files.live());
  return files.state();
}

TEST(LiveFile, OfARunThatWasKilledSaysLostAndOfOneThatEndedWhatItsEndWas) {
  orchestrator::SchedulerConfig config;
  config.actors = {{"trainer", actors::RoleKind::Trainer, {CardId(0)}, 0}};
  const orchestrator::Record started{0, Time(), orchestrator::event::Started{config}, {}};
  const orchestrator::Record finished{
      1,
      Time(),
      orchestrator::event::Aborted{"enough", false},
      {orchestrator::command::Finish{
          false, false, reason_with(orchestrator::ReasonKind::Aborted, "enough")}}};
  EXPECT_EQ(shown({started}), RunState::Lost);
  EXPECT_EQ(shown({started, finished}), RunState::Failed);
}

}  // namespace
}  // namespace temper::cli
