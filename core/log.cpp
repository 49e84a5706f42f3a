#include "core/log.hpp"

#include <spdlog/logger.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <algorithm>
#include <iterator>

namespace temper {
namespace {

spdlog::level::level_enum to_spdlog(Log::Level level) {
  switch (level) {
    case Log::Level::Debug:
      return spdlog::level::debug;
    case Log::Level::Info:
      return spdlog::level::info;
    case Log::Level::Warning:
      return spdlog::level::warn;
    case Log::Level::Error:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

std::string_view name_of(Log::Level level) {
  switch (level) {
    case Log::Level::Debug:
      return "debug";
    case Log::Level::Info:
      return "info";
    case Log::Level::Warning:
      return "warning";
    case Log::Level::Error:
      return "error";
  }
  return "?";
}

std::shared_ptr<spdlog::logger> make_logger(spdlog::sink_ptr sink, Log::Level least) {
  auto logger = std::make_shared<spdlog::logger>("temper", std::move(sink));
  logger->set_pattern("%v");
  logger->set_level(to_spdlog(least));
  logger->flush_on(spdlog::level::trace);
  return logger;
}

void append_value(fmt::memory_buffer& line, std::string_view value) {
  const bool plain = !value.empty() && std::all_of(value.begin(), value.end(), [](char c) {
    return static_cast<unsigned char>(c) > ' ' && c != '"' && c != 0x7f;
  });
  if (plain) {
    line.append(value);
    return;
  }
  line.push_back('"');
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      fmt::format_to(std::back_inserter(line), "\\n");
    } else if (c == '"' || c == '\\') {
      line.push_back('\\');
      line.push_back(c);
    } else if (byte < ' ' || byte == 0x7f) {
      fmt::format_to(std::back_inserter(line), "\\x{:02x}", byte);
    } else {
      line.push_back(c);
    }
  }
  line.push_back('"');
}

}  // namespace

Log Log::to_stderr(const Clock& clock, Level least) {
  return Log(&clock, make_logger(std::make_shared<spdlog::sinks::stderr_sink_mt>(), least));
}

Result<Log> Log::to_file(const Clock& clock, const std::filesystem::path& path, Level least) {
  try {
    auto sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(path.string());
    return Log(&clock, make_logger(std::move(sink), least));
  } catch (const std::exception& e) {
    return Error{ErrorCode::Io,
                 fmt::format("cannot open the log file {}: {}", path.string(), e.what())};
  }
}

Log Log::to_stream(const Clock& clock, std::ostream& out, Level least) {
  return Log(&clock, make_logger(std::make_shared<spdlog::sinks::ostream_sink_mt>(out), least));
}

Log Log::discard() {
  return Log(nullptr, nullptr);
}

void Log::write(Level level, std::string_view text, Fields fields) const {
  if (logger_ == nullptr || !logger_->should_log(to_spdlog(level)))
    return;
  fmt::memory_buffer line;
  fmt::format_to(
      std::back_inserter(line), "{:.6f} {} {}", seconds(clock_->now()), name_of(level), text);
  for (const Field& field : fields) {
    fmt::format_to(std::back_inserter(line), " {}=", field.key);
    append_value(line, field.value);
  }
  logger_->log(to_spdlog(level), spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace temper
