#include "cli/watch/rebuild.hpp"

#include "cli/watch/live.hpp"
#include "core/files.hpp"
#include "orchestrator/pipeline/load.hpp"
#include "orchestrator/run/run_dir.hpp"
#include "orchestrator/start/start_run.hpp"
#include "orchestrator/watch/timeline_file.hpp"

namespace temper::cli {

namespace fs = std::filesystem;

Status provide_live_file(const fs::path& run_dir) {
  const UntrustedFolder run(run_dir);
  const auto known = open_to_read(run, kLiveFile);
  if (known || known.error().code != ErrorCode::NotFound || !open_to_read(run, "events.log"))
    return {};
  const auto lock = orchestrator::RunDir(run_dir).lock();
  if (!lock)
    return {};  // the run is running and writes its own file
  TEMPER_TRY(const auto config, orchestrator::load_config(run_dir / "config.yaml"));
  TEMPER_TRY(auto timeline, orchestrator::TimelineFile::create(run_dir, config.tracking.timeline));
  orchestrator::RunMetrics metrics;
  TEMPER_TRY(const auto log,
             orchestrator::scan_event_log(run_dir / "events.log",
                                          [&](const orchestrator::Record& record, const auto&) {
                                            metrics.feed(record);
                                            return timeline.feed(record);
                                          }));
  TEMPER_TRY_STATUS(timeline.close(metrics.wall()));
  TEMPER_TRY_STATUS(timeline.put_in_place());
  Frame frame = make_frame(config.name, metrics, nullptr, metrics.wall());
  frame.drawn = orchestrator::draws_rewards(config);
  Live live = make_live(frame, metrics, orchestrator::identity_of(config, log.hash));
  // Without a final record the run is lost: no process on any host writes its file.
  live.over = metrics.finish().has_value();
  return write_file_atomically(run_dir / kLiveFile, to_json(live) + "\n");
}

}  // namespace temper::cli
