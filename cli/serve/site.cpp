#include "cli/serve/site.hpp"

#include "cli/serve/assets.hpp"
#include "cli/serve/losses.hpp"
#include "cli/serve/prometheus.hpp"
#include "core/gzip_text.hpp"
#include "core/json.hpp"
#include "core/secret.hpp"
#include "orchestrator/metrics/metric_table.hpp"
#include "orchestrator/pipeline/changes.hpp"
#include "orchestrator/watch/sample_query.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace temper::cli {
namespace {

constexpr std::size_t kMostGroups = 50;
constexpr std::size_t kLeastPacked = 1024;  ///< Bytes; smaller answers fit into one packet.

HttpAnswer refusal(int status, std::string_view why) {
  HttpAnswer answer;
  answer.status = status;
  answer.type = "text/plain; charset=utf-8";
  answer.body = fmt::format("{}\n", why);
  return answer;
}

HttpAnswer text_answer(std::string_view body, std::string type) {
  HttpAnswer answer;
  answer.type = std::move(type);
  answer.body = body;
  return answer;
}

/// One run in the list of /api/runs.
struct ListedRun : RunFigures {
  std::string id;
  RunState state = RunState::Unknown;
  std::string name;
};
void describe(auto& v, ListedRun& r) {
  v.field(1, "id", r.id);
  v.field(2, "state", r.state);
  v.field(3, "name", r.name);
  describe(v, static_cast<RunFigures&>(r));
}

template <class T>
T number(std::string_view text, T otherwise) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : otherwise;
}

std::string_view header(const HttpRequest& request, std::string_view name) {
  const auto it = request.headers.find(name);
  return it == request.headers.end() ? std::string_view() : std::string_view(it->second);
}

/// The name of the cookie contains the port: browsers send cookies to every port of a host, and two
/// pages on 127.0.0.1 must not overwrite each other's cookie.
std::string cookie_name(const HttpRequest& request) {
  const std::string_view host = header(request, "host");
  const std::string_view port = host.substr(std::min(host.rfind(':'), host.size()));
  const bool digits =
      port.size() > 1 && port.substr(1).find_first_not_of("0123456789") == std::string_view::npos;
  return fmt::format("temper_token{}{}", digits ? "_" : "", digits ? port.substr(1) : "");
}

bool shows_token(const HttpRequest& request, const std::string& token) {
  const std::string_view bearer = header(request, "authorization");
  if (bearer.starts_with("Bearer ") && is_same_secret(token, bearer.substr(7)))
    return true;
  const std::string name = cookie_name(request) + "=";
  std::string_view cookies = header(request, "cookie");
  while (!cookies.empty()) {
    std::string_view one = cookies.substr(0, cookies.find(';'));
    cookies.remove_prefix(std::min(cookies.size(), one.size() + 1));
    one.remove_prefix(std::min(one.find_first_not_of(' '), one.size()));
    if (one.starts_with(name) && is_same_secret(token, one.substr(name.size())))
      return true;
  }
  return is_same_secret(token, parse_target(request.target)["token"]);
}

std::string samples_json(const UntrustedFolder& folder, const Target& target) {
  using Order = orchestrator::SampleQuery::Order;
  orchestrator::SampleQuery query;
  if (const auto step = target["step"]; !step.empty())
    query.step = number<std::uint64_t>(step, 0);
  query.text = target["grep"];
  query.order = target["order"] == "worst"  ? Order::Worst
                : target["order"] == "best" ? Order::Best
                                            : Order::Newest;
  query.limit = std::clamp<std::size_t>(number<std::size_t>(target["limit"], 20), 1, kMostGroups);
  const auto found = orchestrator::find_samples(folder, query);
  if (!found)
    return fmt::format(R"({{"matches":0,"reversed":false,"groups":[],"why":{}}})",
                       to_json(found.error().context));
  std::string groups;
  for (const orchestrator::FoundGroup& group : found->groups) {
    std::string lines;
    for (const orchestrator::FoundSample& f : group.responses)
      lines += (lines.empty() ? "" : ",") + f.line;
    groups += fmt::format("{}[{}]", groups.empty() ? "" : ",", lines);
  }
  return fmt::format(
      R"({{"matches":{},"reversed":{},"groups":[{}]}})", found->matches, found->reversed, groups);
}

}  // namespace

std::optional<HttpAnswer> refuse(const HttpRequest& request, const std::string& token) {
  if (!token.empty() && !shows_token(request, token)) {
    HttpAnswer answer = refusal(
        401,
        "this page needs its access token: open the URL that `temper` printed, or send the header "
        "`Authorization: Bearer TOKEN`");
    answer.headers["WWW-Authenticate"] = "Bearer";
    return answer;
  }
  if (request.method != "GET" && request.method != "HEAD")
    return refusal(405, "expected method GET or HEAD");
  return std::nullopt;
}

HttpAnswer Site::answer(const HttpRequest& request) {
  if (auto refused = refuse(request, options_.token))
    return *std::move(refused);
  HttpAnswer answer = answer_plainly(request);
  if (answer.body.size() < kLeastPacked && answer.stream_of.empty())
    return answer;
  answer.headers["Vary"] = "Accept-Encoding";
  if (accepts_gzip(header(request, "accept-encoding"))) {
    answer.headers["Content-Encoding"] = "gzip";
    if (answer.stream_of.empty())
      answer.body = to_gzip(answer.body);
  }
  return answer;
}

HttpAnswer Site::answer_plainly(const HttpRequest& request) {
  const Target target = parse_target(request.target);
  HttpAnswer answer;
  if (target.path == "/") {
    answer = text_answer(assets::page(), "text/html; charset=utf-8");
    if (!options_.token.empty())
      answer.headers["Set-Cookie"] = fmt::format(
          "{}={}; HttpOnly; SameSite=Strict; Path=/", cookie_name(request), options_.token);
  } else if (target.path == "/page.js") {
    answer = text_answer(assets::script(), "text/javascript; charset=utf-8");
  } else if (target.path == "/page.css") {
    answer = text_answer(assets::style(), "text/css; charset=utf-8");
  } else if (target.path == "/metrics") {
    look_for_runs();
    for (const auto& run : runs_)
      run->update();
    answer = text_answer(prometheus_text(runs_), "text/plain; version=0.0.4; charset=utf-8");
  } else if (target.path == "/api/metrics") {
    answer = text_answer(orchestrator::metric_table_json(), "application/json");
  } else if (target.path.starts_with("/api/runs")) {
    answer = answer_api(target);
  } else {
    answer = refusal(404, "no such page; the start page is /");
  }
  return answer;
}

HttpAnswer Site::answer_api(const Target& target) {
  std::string_view rest = std::string_view(target.path).substr(9);
  if (rest.empty() || rest == "/")
    return text_answer(list_runs(), "application/json");
  rest.remove_prefix(1);
  const std::size_t slash = rest.find('/');
  const std::string_view id = rest.substr(0, slash);
  if (find(id) == nullptr)
    look_for_runs();
  RunFiles* run = find(id);
  if (run == nullptr || slash == std::string_view::npos)
    return refusal(404, "no such run; /api/runs lists all runs");
  return answer_run(*run, rest.substr(slash + 1), target);
}

HttpAnswer Site::answer_run(RunFiles& run, std::string_view what, const Target& target) {
  run.update();
  if (what == "live")
    return text_answer(run.frame(), "application/json");
  if (what == "stream") {
    HttpAnswer answer = text_answer("", "text/event-stream");
    answer.stream_of = run.id();
    return answer;
  }
  if (what == "metrics")
    return text_answer(run.series().to_json(number<std::size_t>(target["from"], 0)),
                       "application/json");
  if (what == "timeline") {
    const double to = number(target["to"], run.live() ? run.live()->elapsed_s : 1.0);
    return text_answer(run.timeline(number(target["from"], 0.0), to), "application/json");
  }
  if (what == "samples")
    return text_answer(samples_json(run.folder(), target), "application/json");
  if (what == "losses") {
    const auto yaml = read_file(run.folder(), "config.yaml");
    const RunFacts about{run.folder().path().string(),
                         yaml ? orchestrator::flat_settings(*yaml) : decltype(RunFacts::settings)(),
                         orchestrator::read_predictions(run.folder())};
    const Losses losses = run.live() ? rank_losses(*run.live(), about) : Losses();
    return text_answer(to_json(losses), "application/json");
  }
  if (what == "config") {
    const auto text = read_file(run.folder(), "config.yaml");
    return text ? text_answer(*text, "text/plain; charset=utf-8")
                : refusal(404, "cannot read config.yaml of this run");
  }
  return refusal(404,
                 "no such resource of a run; expected live, stream, metrics, timeline, samples, "
                 "losses or config");
}

std::string Site::list_runs() {
  look_for_runs();
  std::vector<ListedRun> list;
  for (const auto& run : runs_) {
    if (run->frame().empty())
      run->update();
    const std::string name = run->live() ? run->live()->summary.name : std::string();
    list.push_back({run->figures(), run->id(), run->state(), name.empty() ? run->id() : name});
  }
  return to_json(list);
}

void Site::look_for_runs() {
  const std::vector<UntrustedFolder> found = find_runs(options_.folders);
  std::erase_if(runs_, [](const auto& run) { return !run->exists(); });
  for (const UntrustedFolder& folder : found) {
    if (std::ranges::any_of(runs_, [&](const auto& run) { return run->folder() == folder; }))
      continue;
    const std::string name = folder.path().filename();
    std::string id = name;
    for (int n = 2; find(id) != nullptr; ++n)
      id = fmt::format("{}~{}", name, n);
    runs_.push_back(std::make_unique<RunFiles>(std::move(id), folder));
  }
}

RunFiles* Site::find(std::string_view id) {
  const auto it =
      std::ranges::find(runs_, id, [](const auto& run) -> std::string_view { return run->id(); });
  return it == runs_.end() ? nullptr : it->get();
}

std::vector<std::string> Site::update(const std::vector<std::string>& watched) {
  if (updates_++ % 8 == 0)
    look_for_runs();
  std::vector<std::string> changed;
  for (const auto& run : runs_) {
    if (std::ranges::find(watched, run->id()) == watched.end())
      continue;
    run->update();
    if (run->take_news())
      changed.push_back(run->id());
  }
  return changed;
}

}  // namespace temper::cli
