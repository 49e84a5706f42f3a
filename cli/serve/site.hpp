// HTTP routes and access control. No I/O on sockets.
//
//   /                          the page            /page.js, /page.css
//   /api/runs                  id, state and figures of every run
//   /api/runs/ID/live          its frame           /api/runs/ID/stream   a stream of its frames
//   /api/runs/ID/metrics       columns; ?from=POINT
//   /api/runs/ID/timeline      ?from=SECONDS&to=SECONDS
//   /api/runs/ID/samples       ?step=&order=newest|worst|best&grep=&limit=
//   /api/runs/ID/losses        ranked losses of card time
//   /api/runs/ID/config        config.yaml
//   /metrics                   Prometheus text format
//
// Access: every request needs the token, as `?token=` (the answer sets a cookie), as that cookie,
// or as `Authorization: Bearer`. Loopback is no exception: every user of the machine can connect,
// and a foreign web page can resolve its name to 127.0.0.1.
#pragma once

#include "cli/serve/http.hpp"
#include "cli/serve/run_files.hpp"

#include <memory>

namespace temper::cli {

struct SiteOptions {
  std::vector<std::filesystem::path> folders;  ///< Run folders, or folders of runs.
  std::string token;                           ///< Empty: no token needed (HTML report, tests).
};

class Site {
 public:
  explicit Site(SiteOptions options) : options_(std::move(options)) {}

  HttpAnswer answer(const HttpRequest& request);

  /// Finds new runs and reads changed files. Returns the ids of runs whose clients need an update.
  /// Call it a few times a second. Only runs in `watched` and new runs are read.
  std::vector<std::string> update(const std::vector<std::string>& watched);
  /// Null if there is no such run.
  RunFiles* find(std::string_view id);

 private:
  HttpAnswer answer_plainly(const HttpRequest& request);
  HttpAnswer answer_api(const Target& target);
  HttpAnswer answer_run(RunFiles& run, std::string_view what, const Target& target);
  std::string list_runs();
  void look_for_runs();

  const SiteOptions options_;
  std::vector<std::unique_ptr<RunFiles>> runs_;
  std::uint64_t updates_ = 0;
};

/// nullopt if the request is authorized; else the refusal, 401 without the token.
std::optional<HttpAnswer> refuse(const HttpRequest& request, const std::string& token);

}  // namespace temper::cli
