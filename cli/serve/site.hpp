// What is answered to whom: routes, and who may ask. No sockets here.
//
//   /                          the page            /page.js, /page.css
//   /api/runs                  every run: id, state, figures
//   /api/runs/ID/live          its frame           /api/runs/ID/stream   the same, as it changes
//   /api/runs/ID/metrics       columns; ?from=POINT
//   /api/runs/ID/timeline      ?from=SECONDS&to=SECONDS
//   /api/runs/ID/samples       ?step=&order=newest|worst|best&grep=&limit=
//   /api/runs/ID/losses        losses of card time, ranked
//   /api/runs/ID/config        config.yaml
//   /metrics                   for Prometheus
//
// Access: every request needs the token, as `?token=` (the answer sets a cookie), as that cookie,
// or as `Authorization: Bearer`. Loopback is no exception: every user of the machine can connect
// there, and a foreign page can have its name point to 127.0.0.1.
#pragma once

#include "cli/serve/http.hpp"
#include "cli/serve/run_files.hpp"

#include <memory>

namespace temper::cli {

struct SiteOptions {
  std::vector<std::filesystem::path> folders;  ///< Runs, or folders of runs.
  std::string token;                           ///< Empty: none is needed, within one process.
};

class Site {
 public:
  explicit Site(SiteOptions options) : options_(std::move(options)) {}

  HttpAnswer answer(const HttpRequest& request);

  /// Looks for runs and for what changed in them; the ids of those whose clients should be told. To
  /// be called a few times a second. `watched`: only these are read, and what was never read.
  std::vector<std::string> update(const std::vector<std::string>& watched);
  /// Null: no such run.
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

/// Whether a request may be answered; else what is answered instead: 401 without the token.
std::optional<HttpAnswer> refuse(const HttpRequest& request, const std::string& token);

}  // namespace temper::cli
