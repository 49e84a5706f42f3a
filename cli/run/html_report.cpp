#include "cli/run/html_report.hpp"

#include "cli/serve/assets.hpp"
#include "cli/serve/site.hpp"
#include "cli/watch/rebuild.hpp"
#include "core/files.hpp"
#include "core/json.hpp"
#include "orchestrator/metrics/certificate_file.hpp"
#include "orchestrator/metrics/metric_table.hpp"
#include "orchestrator/record/outputs.hpp"

#include <fmt/format.h>

namespace temper::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kCertificates = 20;

/// The last `count` lines of a text.
std::string_view last_lines(std::string_view text, std::size_t lines) {
  std::size_t at = text.size();
  for (std::size_t n = 0; n <= lines && at != std::string_view::npos && at > 0; ++n)
    at = text.rfind('\n', at - 1);
  return at == std::string_view::npos || at == 0 ? text : text.substr(at + 1);
}

/// Escapes JSON for use between <script> and </script>.
std::string in_script(std::string json) {
  for (std::size_t at = 0; (at = json.find("</", at)) != std::string::npos; at += 3)
    json.insert(at + 1, "\\");
  for (std::size_t at = 0; (at = json.find("<!--", at)) != std::string::npos; at += 4)
    json.replace(at, 1, "\\u003c");
  return json;
}

std::string replaced(std::string text, std::string_view what, std::string_view with) {
  const std::size_t at = text.find(what);
  return at == std::string::npos ? text : text.replace(at, what.size(), with);
}

}  // namespace

Result<std::string> html_report(const fs::path& run_dir) {
  const fs::path run = fs::absolute(run_dir).lexically_normal();
  if (!is_run(run))
    return Error{ErrorCode::NotFound, fmt::format("{} holds no run (no events.log)", run.string())};
  TEMPER_TRY_STATUS(provide_live_file(run));
  Site site({{run}, ""});
  site.update({});
  const auto get = [&](std::string_view what) {
    const std::string target =
        what.empty() ? "/api/runs"
                     : fmt::format("/api/runs/{}/{}", encoded(run.filename().string()), what);
    return site.answer({"GET", target, {{"host", "localhost"}}}).body;
  };
  const auto certificates = read_file(UntrustedFolder(run), orchestrator::kCertificateFile);
  const std::string data = fmt::format(
      R"({{"runs":{},"frame":{},"metrics":{},"timeline":{},"samples":{},"losses":{},"config":{},"certificates":{},"table":{}}})",
      get(""),
      get("live"),
      get("metrics"),
      get("timeline"),
      get("samples"),
      get("losses"),
      to_json(get("config")),
      to_json(certificates ? std::string(last_lines(*certificates, kCertificates)) : std::string()),
      orchestrator::metric_table_json());
  std::string page(assets::page());
  page = replaced(
      std::move(page),
      R"(<link rel="stylesheet" href="page.css">)",
      fmt::format(R"(<meta http-equiv="Content-Security-Policy" content="default-src 'none'; )"
                  R"(script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:">)"
                  "\n<style>{}</style>",
                  assets::style()));
  page = replaced(std::move(page), R"(<script src="page.js" defer></script>)", "");
  // After the elements that it fills.
  return replaced(std::move(page),
                  "</body>",
                  fmt::format("<script type=\"application/json\" id=\"temper-report\">{}</script>\n"
                              "<script>{}</script>\n</body>",
                              in_script(data),
                              assets::script()));
}

}  // namespace temper::cli
