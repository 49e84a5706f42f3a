#include "actors/server/server.hpp"

#include "actors/server/internal/answers.hpp"
#include "core/check.hpp"
#include "core/files.hpp"
#include "core/hash.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

namespace temper::actors {
namespace {

namespace fs = std::filesystem;

constexpr Duration kLookAgain = std::chrono::milliseconds(100);
constexpr Duration kFirstPause = std::chrono::milliseconds(100);
constexpr Duration kLongestPause = std::chrono::seconds(30);

std::string server_key() {
  const char* const key = std::getenv("TEMPER_SERVER_KEY");
  return key != nullptr ? key : "";
}

Result<std::string> body_of(const ServerCall& call, HttpAnswer answer) {
  if (answer.status == 0)
    return Error{ErrorCode::Unavailable, std::move(answer.failure)};
  if (!answer.good()) {
    return Error{ErrorCode::Internal,
                 fmt::format("{} {}: expected status 2xx, found {}: {}",
                             call.method,
                             call.target,
                             answer.status,
                             answer.body.substr(0, 200))};
  }
  return std::move(answer.body);
}

}  // namespace

Server::Server(ServerOptions options, const Clock& clock, const Log& log)
    : options_(std::move(options)),
      clock_(&clock),
      log_(&log),
      api_(make_server_api(options_.config, options_.sampling)) {
  if (!options_.config.start.empty())
    process_.emplace(options_.config.start, options_.log);
}

Result<std::unique_ptr<Server>> Server::create(ServerOptions options,
                                               const Clock& clock,
                                               const Log& log) {
  std::unique_ptr<Server> server(new Server(std::move(options), clock, log));
  if (server->options_.config.folder.empty()) {
    remove_abandoned_folders("temper-weights-");
    TEMPER_TRY(TemporaryFolder folder, TemporaryFolder::create("temper-weights-"));
    server->folder_ = folder.path();
    server->own_folder_.emplace(std::move(folder));
  } else {
    server->folder_ = server->options_.config.folder;
    TEMPER_TRY_STATUS(make_folder(server->folder_));
  }
  return server;
}

Result<ServerVersion> Server::write(PolicyVersion version, std::span<const std::byte> image) {
  return write(version, image, options_.model);
}

Result<ServerVersion> Server::write_base(std::span<const std::byte> image) {
  FolderModel model = options_.model;
  model.shape.lora.reset();
  return write(PolicyVersion(0), image, model);
}

Result<ServerVersion> Server::write(PolicyVersion version,
                                    std::span<const std::byte> image,
                                    const FolderModel& model) {
  // Includes a hash, because a run that rolls back produces other weights with the same version
  // number.
  const Time begin = clock_->now();
  ServerVersion written;
  written.label = fmt::format("v{}-{:016x}", version, hash64(image));
  written.folder = folder_ / written.label;
  if (!model.synthetic) {
    TEMPER_TRY(written.canary, canary_of(image));
  }
  TEMPER_TRY(written.bytes, write_version_folder(written.folder, image, model));
  written.writing = clock_->now() - begin;
  return written;
}

void Server::remove_old(const std::string& current, const std::string& first) {
  constexpr std::size_t kKept = 4;
  std::error_code ignored;
  recent_.push_back(current);
  if (recent_.size() > kKept) {
    if (recent_.front() != first && recent_.front() != current)
      fs::remove_all(folder_ / recent_.front(), ignored);
    recent_.pop_front();
  }
  if (!own_folder_)
    return;
  for (const auto& entry : fs::directory_iterator(folder_, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with('v') && name != current && name != first)
      fs::remove_all(entry.path(), ignored);
  }
}

Status Server::locate() {
  const EngineConfig& c = options_.config;
  Url data;
  if (process_ && c.data.empty()) {
    if (!data_url_) {
      TEMPER_TRY(data.port, free_port());
      data.host = "127.0.0.1";
    } else {
      data = *data_url_;
    }
  } else {
    TEMPER_TRY(data, find_server(c.data, options_.index));
  }
  Url control = data;
  if (!c.control.empty()) {
    TEMPER_TRY(control, find_server(c.control, options_.index));
  }
  if (data_url_ != data) {
    data_ = std::make_unique<HttpClient>(data, options_.connections, server_key());
    data_url_ = data;
  }
  if (control_url_ != control) {
    control_ = std::make_unique<HttpClient>(control, 2, server_key());
    control_url_ = control;
  }
  return {};
}

Status Server::restart(const fs::path& model) {
  if (const auto how = process_->ended()) {
    last_seen_ = fmt::format("the process ended ({}); see {}", *how, process_->log().string());
    log_->warning("server ended", {{"how", *how}, {"log", process_->log().string()}});
    process_->stop();
  }
  if (process_->is_started())
    return {};
  if (clock_->now() < next_start_)
    return {};
  next_start_ = clock_->now() + pause_;
  pause_ = std::min(pause_ * 2, kLongestPause);
  log_->info("starting server", {{"address", text_of(*data_url_)}, {"model", model.string()}});
  started_with_ = model;
  ++starts_;
  return process_->start(model, *data_url_);
}

bool Server::runs(const ServerVersion& version) {
  return process_ && process_->is_started() && !process_->ended() &&
         started_with_ == version.folder;
}

Status Server::start_with(const ServerVersion& version) {
  TEMPER_CHECK(process_.has_value(), "cannot restart a server that Temper did not start");
  process_->stop();
  // At another port, so that a remainder of the old process cannot answer.
  if (options_.config.data.empty())
    data_url_.reset();
  next_start_ = clock_->now();
  return await(version.folder);
}

/// Limit for the response of the health route, of which only the status is used; for some servers
/// it is a list of models.
constexpr std::uint64_t kLargestHealthAnswer = std::uint64_t{1} << 20;

Result<bool> Server::look(const fs::path& model) {
  if (const Status located = locate(); !located) {
    if (located.error().code != ErrorCode::Unavailable)
      return located.error();
    last_seen_ = located.error().context;
    return false;
  }
  if (process_)
    TEMPER_TRY_STATUS(restart(model));
  const HttpAnswer health =
      control_->call({"GET", api_->health(), {}, options_.probe_deadline, kLargestHealthAnswer});
  if (!health.good()) {
    last_seen_ = health.status == 0 ? health.failure
                                    : fmt::format("health check returned status {}", health.status);
    return false;
  }
  TEMPER_TRY(const bool known, learn_capabilities());
  if (known)
    pause_ = kFirstPause;
  return known;
}

Status Server::await(const fs::path& model) {
  const Time deadline = clock_->now() + options_.config.patience;
  for (;;) {
    TEMPER_TRY(const bool works, look(model));
    if (works)
      return {};
    if (options_.on_wait)
      options_.on_wait();
    if (clock_->now() >= deadline) {
      return Error{
          ErrorCode::Timeout,
          fmt::format("the server did not become ready within {} (engine.patience); last state: {}",
                      to_text(options_.config.patience),
                      last_seen_)};
    }
    std::this_thread::sleep_for(kLookAgain);
  }
}

Result<bool> Server::learn_capabilities() {
  std::set<std::string> routes;
  if (const auto listed = ask({"GET", "/openapi.json", {}}, options_.probe_deadline)) {
    const nlohmann::json document = parse_json(*listed);
    if (document.is_object() && document.contains("paths") && document["paths"].is_object()) {
      for (const auto& [path, methods] : document["paths"].items())
        routes.insert(path);
    }
  }
  TEMPER_TRY_STATUS(api_->accept_routes(routes));
  if (!options_.config.served_model.empty()) {
    api_->set_model(options_.config.served_model);
    return probe();
  }
  TEMPER_TRY(const std::string models, ask_data({"GET", "/v1/models", {}}));
  const nlohmann::json document = parse_json(models);
  const nlohmann::json list =
      document.is_object() ? document.value("data", nlohmann::json()) : nlohmann::json();
  if (!list.is_array() || list.empty() || !list[0].is_object() || !list[0].contains("id") ||
      !list[0]["id"].is_string())
    return corrupt("the server lists no model at /v1/models; set engine.served_model");
  api_->set_model(list[0]["id"].get<std::string>());
  return probe();
}

Result<bool> Server::probe() {
  constexpr int kServerError = 500;
  while (const auto call = api_->next_probe()) {
    const HttpAnswer answer =
        data_->call({call->method, call->target, call->body, options_.control_deadline});
    if (answer.status == 0 || answer.status >= kServerError) {
      last_seen_ = answer.status == 0 ? answer.failure
                                      : fmt::format("{} {}: expected status 2xx, found {}: {}",
                                                    call->method,
                                                    call->target,
                                                    answer.status,
                                                    answer.body.substr(0, 200));
      return false;
    }
    TEMPER_TRY_STATUS(api_->learn(answer.status, answer.body));
  }
  return true;
}

Result<std::string> Server::ask(const ServerCall& call, std::optional<Duration> deadline) {
  return body_of(
      call,
      control_->call(
          {call.method, call.target, call.body, deadline.value_or(options_.control_deadline)}));
}

Result<std::string> Server::ask_data(const ServerCall& call, std::optional<Duration> deadline) {
  return body_of(
      call,
      data_->call(
          {call.method, call.target, call.body, deadline.value_or(options_.control_deadline)}));
}

Result<std::string> Server::label() {
  const auto call = api_->version();
  if (!call)
    return trusted_label();
  TEMPER_TRY(const std::string body, ask(*call, options_.probe_deadline));
  return api_->read_version(body);
}

Result<std::string> Server::trusted_label() {
  if (!trusted_)
    return Error{ErrorCode::Unavailable,
                 "the server does not report its weights, and none were loaded by this run"};
  if (process_ && (process_->ended() || !process_->is_started() || starts_ != trusted_->start))
    return Error{ErrorCode::Unavailable, "the server was restarted after its weights were loaded"};
  if (!trusted_->canary)
    return trusted_->label;
  TEMPER_TRY(const std::vector<float> scores, score(trusted_->canary->tokens));
  const double distance = mean_distance(scores, trusted_->canary->logprobs);
  if (distance > options_.config.tolerance) {
    return corrupt(
        fmt::format("the canary's log-probs differ by {:.3g} from those of {}: the server has "
                    "other weights",
                    distance,
                    trusted_->label));
  }
  return trusted_->label;
}

Status Server::trust(const ServerVersion& version) {
  trusted_ = TrustedWeights{version.label, starts_, version.canary};
  if (process_ && api_->loading() == ServerApi::Loading::Restart) {
    trusted_->canary.reset();
  } else if (!version.canary) {
    Canary own{canary_tokens(options_.model.vocabulary, options_.model.shape.context), {}};
    auto scores = score(own.tokens);
    if (!scores) {
      trusted_.reset();
      return scores.error();
    }
    own.logprobs = *std::move(scores);
    trusted_->canary = std::move(own);
  }
  return {};
}

void Server::use(const ServerVersion& version) {
  if (options_.model.shape.lora)
    api_->use_adapter(version.label);
}

void Server::forget(const ServerVersion& version) {
  const auto call = options_.model.shape.lora ? api_->unload(version.label) : std::nullopt;
  if (!call)
    return;
  if (const auto body = ask(*call); !body)
    log_->warning("adapter not unloaded", {{"why", body.error().context}});
}

Status Server::release(ServerMemory what) {
  TEMPER_TRY(const std::vector<ServerCall> calls, api_->release(what));
  return ask_all(calls);
}

Status Server::regain(ServerMemory what) {
  return ask_all(api_->regain(what));
}

Status Server::ask_all(const std::vector<ServerCall>& calls) {
  for (const ServerCall& call : calls) {
    TEMPER_TRY(const std::string body, ask(call));
  }
  return {};
}

Result<std::vector<float>> Server::score(std::span<const std::int32_t> tokens, std::size_t first) {
  constexpr Duration kDeadline = std::chrono::seconds(30);
  const auto ask_for = [&](std::span<const std::int32_t> some) -> Result<std::vector<float>> {
    TEMPER_TRY(const std::string body, ask_data(api_->score(some), kDeadline));
    return api_->read_scores(body, some);
  };
  std::vector<float> scores;
  if (api_->scores_at_once()) {
    TEMPER_TRY(scores, ask_for(tokens));
    scores.erase(scores.begin(), scores.begin() + static_cast<std::ptrdiff_t>(first - 1));
    return scores;
  }
  for (std::size_t i = first; i < tokens.size(); ++i) {
    TEMPER_TRY(const std::vector<float> one, ask_for(tokens.first(i + 1)));
    if (one.size() != 1)
      return corrupt(fmt::format("expected one log-prob, found {}", one.size()));
    scores.push_back(one.front());
  }
  return scores;
}

}  // namespace temper::actors
