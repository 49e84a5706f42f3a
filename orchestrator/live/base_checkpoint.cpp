#include "orchestrator/live/base_checkpoint.hpp"

#include "actors/asio/asio.hpp"
#include "core/files.hpp"
#include "core/hash.hpp"
#include "core/msgpack.hpp"
#include "core/yaml.hpp"
#include "orchestrator/live/supervisor.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

/// Equal inputs, equal name. The first part is raised when pretraining itself changes.
std::string cache_name(const PipelineConfig& c) {
  const std::string inputs = encode(c.model) + encode(c.task) + encode(c.pretrain) +
                             encode(c.sampling.temperature) + encode(c.seed);
  return fmt::format("base-v1-{:016x}.safetensors", hash64(inputs));
}

std::string last_line(const fs::path& path) {
  auto text = read_file(path);
  if (!text)
    return "";
  while (text->ends_with('\n'))
    text->pop_back();
  return text->substr(text->rfind('\n') + 1);
}

/// Runs the program to its end, showing its last line of output.
Status run_to_end(const ChildSpec& spec, const std::function<void(std::string_view)>& on_progress) {
  boost::asio::io_context io{1};
  std::optional<ChildExit> end;
  Supervisor supervisor(io, [&](const ChildExit& e) {
    end = e;
    io.stop();
  });
  boost::asio::signal_set signals(io, SIGINT, SIGTERM);
  signals.async_wait([&](auto error, int) {
    if (!error)
      io.stop();
  });
  TEMPER_TRY([[maybe_unused]] const auto pid, supervisor.start(spec));
  while (!end && !io.stopped()) {
    io.run_for(200ms);
    if (on_progress)
      on_progress(last_line(spec.log));
  }
  if (!end)
    return Error{ErrorCode::Unavailable, "pretraining was stopped on request"};
  if (!end->success) {
    return Error{ErrorCode::Internal,
                 fmt::format("pretraining ended with {}: {}", end->status, last_line(spec.log))};
  }
  return {};
}

}  // namespace

fs::path cache_folder() {
  if (const char* own = std::getenv("TEMPER_CACHE"))
    return own;
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"))
    return fs::path(xdg) / "temper";
  if (const char* home = std::getenv("HOME"))
    return fs::path(home) / ".cache" / "temper";
  return fs::temp_directory_path() / "temper-cache";
}

Status provide_base_checkpoint(const PipelineConfig& config, const BaseCheckpointOptions& options) {
  TEMPER_TRY_STATUS(make_folder(cache_folder()));
  const fs::path cached = cache_folder() / cache_name(config);
  if (!fs::exists(cached)) {
    const fs::path yaml = options.copy_to.string() + ".config.yaml";
    const fs::path made = fmt::format("{}.{}", cached.string(), getpid());
    TEMPER_TRY_STATUS(write_file_atomically(yaml, to_yaml(config)));
    ChildSpec spec;
    spec.name = "pretrain";
    spec.command = {options.worker.string(),
                    "pretrain",
                    "--config",
                    yaml.string(),
                    "--out",
                    made.string(),
                    "--parent",
                    std::to_string(getpid())};
    spec.log = options.log;
    const Status status = run_to_end(spec, options.on_progress);
    std::error_code ignored;
    fs::remove(yaml, ignored);
    if (!status)
      return status;
    std::error_code error;
    fs::rename(made, cached, error);
    if (error)
      return io_error("cannot keep " + cached.string(), error.value());
  }
  TEMPER_TRY(const std::string image, read_file(cached));
  return write_file_atomically(options.copy_to, image);
}

}  // namespace temper::orchestrator
