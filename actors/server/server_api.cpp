#include "actors/server/server_api.hpp"

#include "core/check.hpp"

#include <charconv>
#include <cstdlib>

namespace temper::actors {

std::unique_ptr<ServerApi> make_server_api(const EngineConfig& config,
                                           const ServerSampling& sampling) {
  switch (config.kind) {
    case EngineKind::Vllm:
      return make_vllm_api(sampling);
    case EngineKind::Sglang:
      return make_sglang_api(sampling);
    case EngineKind::Openai:
      return make_openai_api(config, sampling);
    case EngineKind::Llamacpp:
      return make_llamacpp_api(sampling);
    case EngineKind::Native:
    case EngineKind::Python:
    case EngineKind::Command:
      break;
  }
  TEMPER_CHECK(false, "this engine kind is not a server");
  return nullptr;
}

std::optional<double> metric(std::string_view text, std::string_view name) {
  std::optional<double> sum;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.starts_with(name))
      continue;
    line.remove_prefix(name.size());
    if (line.starts_with('{')) {
      const std::size_t close = line.rfind('}');
      if (close == std::string_view::npos)
        continue;
      line.remove_prefix(close + 1);
    }
    if (!line.starts_with(' '))
      continue;  // Another metric with a longer name.
    const std::string value(line.substr(1));
    char* rest = nullptr;
    const double read = std::strtod(value.c_str(), &rest);
    if (rest != value.c_str())
      sum = sum.value_or(0) + read;
  }
  return sum;
}

}  // namespace temper::actors
