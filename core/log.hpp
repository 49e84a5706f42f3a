// Log lines for people: logical time, level, a constant text, then key=value pairs.
//
//   12.345678 warning message dropped peer=00ab12cd why="3 frames"
//
// A Log is passed to the code that writes to it; there is no global log. Thread-safe.
#pragma once

#include "core/clock.hpp"
#include "core/result.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>

namespace spdlog {
class logger;
}

namespace temper {

class Log {
 public:
  enum class Level { Debug, Info, Warning, Error };

  struct Field {
    template <class T>
    Field(std::string_view name, const T& v) : key(name), value(fmt::format("{}", v)) {}
    std::string_view key;
    std::string value;  ///< Quoted if it is empty or contains blanks, quotes or control characters.
  };
  using Fields = std::initializer_list<Field>;

  /// `clock` must outlive the log and all its copies.
  static Log to_stderr(const Clock& clock, Level least = Level::Info);
  /// Appends to the file; each line reaches the kernel before the call returns. Errors: Io.
  static Result<Log> to_file(const Clock& clock,
                             const std::filesystem::path& path,
                             Level least = Level::Info);
  /// For tests. `out` must outlive the log.
  static Log to_stream(const Clock& clock, std::ostream& out, Level least = Level::Debug);
  /// Writes nothing.
  static Log discard();

  void debug(std::string_view text, Fields fields = {}) const { write(Level::Debug, text, fields); }
  void info(std::string_view text, Fields fields = {}) const { write(Level::Info, text, fields); }
  void warning(std::string_view text, Fields fields = {}) const {
    write(Level::Warning, text, fields);
  }
  void error(std::string_view text, Fields fields = {}) const { write(Level::Error, text, fields); }
  void write(Level level, std::string_view text, Fields fields) const;

 private:
  Log(const Clock* clock, std::shared_ptr<spdlog::logger> logger)
      : clock_(clock), logger_(std::move(logger)) {}
  const Clock* clock_;                      ///< Null: discards.
  std::shared_ptr<spdlog::logger> logger_;  ///< Null: discards.
};

}  // namespace temper
