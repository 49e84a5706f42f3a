// Declares the flags of one command. Only flags.cpp includes CLI11, which keeps compile times of
// the commands short.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name
class App;
}

namespace temper::cli {

enum class Need { Optional, Required };

/// Declares the arguments and flags of a command and the variables that receive their values. The
/// variables must outlive the parsing. --help shows a default unless it is empty or 0.
class Flags {
 public:
  explicit Flags(CLI::App& command) : command_(command) {}

  /// A positional argument.
  void argument(const char* name, std::string& to, const char* help, Need need = Need::Required);
  void arguments(const char* name,
                 std::vector<std::string>& to,
                 const char* help,
                 Need need = Need::Required);
  /// CONFIG (the pipeline's YAML), --set and --file.
  void pipeline(std::string& config, std::vector<std::string>& sets, Need need = Need::Required);
  void sets(std::vector<std::string>& to,
            const char* help = "Override a key: key=value (repeatable)");

  void flag(const char* name, bool& to, const char* help);
  void json(bool& to, const char* help = "Print one JSON object") { flag("--json", to, help); }
  /// An empty value is an error.
  void text(const char* name, std::string& to, const char* help);
  /// A flag with an optional value. Given without one, `to` is the empty string.
  void flag_or_text(const char* name, std::optional<std::string>& to, const char* help);
  /// A repeatable flag; each use adds one value.
  void repeated(const char* name, std::vector<std::string>& to, const char* help);
  /// Comma-separated values.
  void list(const char* name, std::vector<std::string>& to, const char* help);
  void number(const char* name, int& to, const char* help);
  void number(const char* name, std::uint64_t& to, const char* help);
  void number(const char* name, double& to, const char* help);
  /// A number >= 1; a default of 0 means that none is given.
  void count(const char* name, int& to, const char* help);
  void count(const char* name, std::uint64_t& to, const char* help);
  /// A number >= 0; nullopt unless given.
  void number(const char* name, std::optional<double>& to, const char* help);
  void number(const char* name, std::optional<std::uint64_t>& to, const char* help);
  /// One of `names`; `chosen` receives its index.
  void choice(const char* name,
              const std::vector<std::string>& names,
              std::function<void(std::size_t)> chosen,
              const char* help);

 private:
  CLI::App& command_;
};

}  // namespace temper::cli
