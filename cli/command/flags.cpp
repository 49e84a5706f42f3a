#include "cli/command/flags.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>

namespace temper::cli {
namespace {

CLI::Validator not_negative() {
  return {[](const std::string& text) {
            return text.starts_with('-') ? "expected a number from 0, found " + text
                                         : std::string();
          },
          "NONNEGATIVE"};
}

CLI::Validator positive() {
  return {[](const std::string& text) {
            const bool is_zero = !text.empty() && text.find_first_not_of('0') == std::string::npos;
            return is_zero || text.starts_with('-')
                       ? fmt::format(
                             "expected a number from 1, found {}; leave the flag out for "
                             "its default",
                             text)
                       : std::string();
          },
          "POSITIVE"};
}

CLI::Validator not_empty(const char* refusal) {
  return {[refusal](const std::string& text) { return text.empty() ? refusal : std::string(); },
          ""};
}

constexpr const char* kEmptyFlag =
    "expected a value, found an empty one; leave the flag out for its default";
constexpr const char* kEmptyArgument = "expected a name or a path, found an empty text";

}  // namespace

void Flags::argument(const char* name, std::string& to, const char* help, Need need) {
  command_.add_option(name, to, help)
      ->required(need == Need::Required)
      ->check(not_empty(kEmptyArgument));
}

void Flags::arguments(const char* name, std::vector<std::string>& to, const char* help, Need need) {
  command_.add_option(name, to, help)
      ->required(need == Need::Required)
      ->check(not_empty(kEmptyArgument));
}

void Flags::pipeline(std::string& config, std::vector<std::string>& sets, Need need) {
  argument("config", config, "Pipeline YAML, e.g. configs/quickstart.yaml", need);
  const auto repeats = [&](const char* name, auto add, const char* help) {
    command_.add_option_function<std::vector<std::string>>(name, add, help)
        ->allow_extra_args(false);
  };
  repeats(
      "--set",
      [&sets](const std::vector<std::string>& given) {
        sets.insert(sets.end(), given.begin(), given.end());
      },
      "Override a key of the files: key=value (repeatable)");
  repeats(
      "-f,--file",
      [&sets](const std::vector<std::string>& given) {
        std::vector<std::string> files;
        files.reserve(given.size());
        for (const std::string& file : given)
          files.push_back("@" + file);
        sets.insert(sets.begin(), files.begin(), files.end());
      },
      "Another YAML that overrides keys of CONFIG (repeatable)");
}

void Flags::sets(std::vector<std::string>& to, const char* help) {
  repeated("--set", to, help);
}

void Flags::flag(const char* name, bool& to, const char* help) {
  command_.add_flag(name, to, help);
}

void Flags::text(const char* name, std::string& to, const char* help) {
  auto* option = command_.add_option(name, to, help)->check(not_empty(kEmptyFlag));
  if (!to.empty())
    option->capture_default_str();
}

void Flags::flag_or_text(const char* name, std::optional<std::string>& to, const char* help) {
  command_
      .add_option_function<std::vector<std::string>>(
          name,
          [&to](const std::vector<std::string>& given) {
            to = given.empty() || given.front() == "{}" ? "" : given.front();
          },
          help)
      ->expected(0, 1)
      ->allow_extra_args(false);
}

void Flags::repeated(const char* name, std::vector<std::string>& to, const char* help) {
  command_.add_option(name, to, help)->allow_extra_args(false);
}

void Flags::list(const char* name, std::vector<std::string>& to, const char* help) {
  auto* option = command_.add_option(name, to, help)->delimiter(',')->allow_extra_args(false);
  if (!to.empty())
    option->capture_default_str();
}

void Flags::number(const char* name, int& to, const char* help) {
  auto* option = command_.add_option(name, to, help)->check(not_negative());
  if (to != 0)
    option->capture_default_str();
}

void Flags::number(const char* name, std::uint64_t& to, const char* help) {
  auto* option = command_.add_option(name, to, help);
  if (to != 0)
    option->capture_default_str();
}

void Flags::number(const char* name, double& to, const char* help) {
  command_.add_option(name, to, help)->capture_default_str();
}

void Flags::count(const char* name, int& to, const char* help) {
  auto* option = command_.add_option(name, to, help)->check(positive());
  if (to != 0)
    option->capture_default_str();
}

void Flags::count(const char* name, std::uint64_t& to, const char* help) {
  auto* option = command_.add_option(name, to, help)->check(positive());
  if (to != 0)
    option->capture_default_str();
}

void Flags::number(const char* name, std::optional<double>& to, const char* help) {
  command_
      .add_option_function<double>(
          name, [&to](const double& value) { to = value; }, help)
      ->check(not_negative());
}

void Flags::number(const char* name, std::optional<std::uint64_t>& to, const char* help) {
  command_.add_option_function<std::uint64_t>(
      name, [&to](const std::uint64_t& value) { to = value; }, help);
}

void Flags::choice(const char* name,
                   const std::vector<std::string>& names,
                   std::function<void(std::size_t)> chosen,
                   const char* help) {
  command_
      .add_option_function<std::string>(
          name,
          [names, chosen = std::move(chosen)](const std::string& word) {
            chosen(static_cast<std::size_t>(std::ranges::find(names, word) - names.begin()));
          },
          help)
      ->check(CLI::IsMember(names));
}

}  // namespace temper::cli
