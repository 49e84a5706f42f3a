// Requests to the web page of runs, and the files of a run folder that the page shows, as any
// bytes.
#include "cli/serve/site.hpp"
#include "core/check.hpp"
#include "core/files.hpp"
#include "core/json_document.hpp"
#include "core/temporary_folder.hpp"
#include "tests/fuzz/targets.hpp"

#include <array>
#include <filesystem>
#include <string>
#include <vector>

namespace temper::fuzz {
namespace {

using namespace cli;

constexpr std::string_view kToken = "secret", kRun = "first";

/// A file of a run, and the routes whose answers depend on it.
struct ShownFile {
  std::string_view name, valid;
  std::vector<std::string_view> routes;
};

const std::array<ShownFile, 6>& shown_files() {
  static const std::array<ShownFile, 6> files{
      {{"live.json", "{}", {"/api/runs", "/live", "/losses", "/metrics"}},
       {"metrics.jsonl", "{\"step\":1,\"time\":1,\"reward\":0.25}\n", {"/metrics"}},
       {"samples.jsonl",
        "{\"step\":2,\"group\":1,\"prompt\":\"1+1=\",\"response\":\"2\",\"reward\":1}\n",
        {"/samples", "/samples?order=worst&grep=1", "/samples?order=best&step=2"}},
       {"predictions.jsonl", "", {"/losses"}},
       {"timeline/0.jsonl", "{\"b\":0,\"e\":9}\n", {"/timeline?from=0&to=9"}},
       {"config.yaml", "name: first\n", {"/losses", "/config"}}}};
  return files;
}

/// Replaces a file of the run; without a sync.
void put(const std::filesystem::path& path, std::string_view bytes) {
  std::filesystem::remove(path);
  AppendFile file = AppendFile::open(path, 0).value();
  TEMPER_CHECK(file.append(bytes), "a temporary file can be written");
}

/// A folder with one run, kept for the whole process.
const std::filesystem::path& runs() {
  static const auto* made = [] {
    auto* folder =
        new temper::TemporaryFolder(temper::TemporaryFolder::create("temper-fuzz-").value());
    std::filesystem::create_directories(folder->path() / kRun / "timeline");
    put(folder->path() / kRun / "events.log", "");
    for (const ShownFile& file : shown_files())
      put(folder->path() / kRun / file.name, file.valid);
    return folder;
  }();
  return made->path();
}

void check_answer(const HttpAnswer& answer) {
  constexpr std::array kStatuses{200, 401, 404, 405};
  TEMPER_CHECK(std::ranges::count(kStatuses, answer.status) == 1, "a status is a documented one");
  if (answer.type == "application/json" && !answer.headers.contains("Content-Encoding"))
    TEMPER_CHECK(nlohmann::json::accept(answer.body), "an answer of this type is JSON");
}

/// Takes the next line of a text.
std::string take_line(std::string_view& text) {
  const std::string line(text.substr(0, text.find('\n')));
  text.remove_prefix(std::min(text.size(), line.size() + 1));
  return line;
}

}  // namespace

void page_request(std::string_view bytes) {
  static Site site({{runs()}, std::string(kToken)});
  HttpRequest request;
  request.method = take_line(bytes);
  request.target = take_line(bytes);
  for (const char* name : {"cookie", "authorization", "accept-encoding"})
    request.headers[name] = take_line(bytes);
  request.headers["host"] = bytes;
  const HttpAnswer answer = site.answer(request);
  check_answer(answer);
  const auto shows = [](std::string_view text) { return text.find(kToken) != std::string::npos; };
  if (!shows(parse_target(request.target)["token"]) && !shows(request.headers["cookie"]) &&
      !shows(request.headers["authorization"]))
    TEMPER_CHECK(answer.status == 401, "a client without the token is refused");
  TEMPER_CHECK(parse_target("/" + encoded(request.target)).path == "/" + request.target,
               "what is encoded is decoded");
}

void page_files(std::string_view bytes) {
  if (bytes.empty())
    return;
  const auto choice = static_cast<unsigned char>(bytes.front());
  const ShownFile& file = shown_files()[choice % shown_files().size()];
  put(runs() / kRun / file.name, bytes.substr(1));
  Site site({{runs()}, ""});  // a new one: it reads a file again only if its times have changed
  for (const std::string_view route : file.routes) {
    HttpRequest request;
    request.target = route.starts_with("/api") ? route : "/api/runs/first" + std::string(route);
    check_answer(site.answer(request));
  }
  check_answer(site.answer({"GET", "/metrics", {}}));
  put(runs() / kRun / file.name, file.valid);
}

}  // namespace temper::fuzz
