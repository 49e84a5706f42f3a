// The flags of one command. The library that parses them is behind flags.cpp, so that a command is
// compiled without it.
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

/// Where a command says which words and flags it takes, and where their values go. What is named
/// must outlive the parsing. A default that is not empty, or not 0, is shown by --help.
class Flags {
 public:
  explicit Flags(CLI::App& command) : command_(command) {}

  /// A word without a flag.
  void argument(const char* name, std::string& to, const char* help, Need need = Need::Required);
  void arguments(const char* name,
                 std::vector<std::string>& to,
                 const char* help,
                 Need need = Need::Required);
  /// The pipeline's YAML and --set.
  void pipeline(std::string& config, std::vector<std::string>& sets, Need need = Need::Required);
  void sets(std::vector<std::string>& to, const char* help = "key=value; may be repeated");

  void flag(const char* name, bool& to, const char* help);
  void json(bool& to, const char* help = "As one JSON object") { flag("--json", to, help); }
  void text(const char* name, std::string& to, const char* help);
  /// A flag that may have a value behind it.
  void flag_or_text(const char* name, std::optional<std::string>& to, const char* help);
  /// One value each time that it is given.
  void repeated(const char* name, std::vector<std::string>& to, const char* help);
  /// Values separated by commas.
  void list(const char* name, std::vector<std::string>& to, const char* help);
  void number(const char* name, int& to, const char* help);
  void number(const char* name, std::uint64_t& to, const char* help);
  void number(const char* name, double& to, const char* help);
  /// Not negative; none unless given.
  void number(const char* name, std::optional<double>& to, const char* help);
  void number(const char* name, std::optional<std::uint64_t>& to, const char* help);
  /// One of these names; `chosen` gets its index.
  void choice(const char* name,
              const std::vector<std::string>& names,
              std::function<void(std::size_t)> chosen,
              const char* help);

 private:
  CLI::App& command_;
};

}  // namespace temper::cli
