#include "orchestrator/run/processes/exit_reason.hpp"

#include "actors/border/values.hpp"

#include <algorithm>

namespace temper::orchestrator {
namespace {

constexpr std::string_view kBlanks = " \t\r\n\v\f";
/// The formats of time stamps, where 0 is any digit: the decimals of core/log.cpp, and Python's
/// `%(asctime)s` as python/src/temper/worker.py configures it.
constexpr std::string_view kLogDecimals = ".000000 ";
constexpr std::string_view kPythonTime = "0000-00-00 00:00:00,000 ";

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Removes a prefix of this format; false if there is none.
bool remove_prefix(std::string_view& text, std::string_view format) {
  const auto same = [](char f, char c) { return f == '0' ? is_digit(c) : f == c; };
  if (text.size() < format.size() ||
      !std::equal(format.begin(), format.end(), text.begin(), same)) {
    return false;
  }
  text.remove_prefix(format.size());
  return true;
}

bool is_informational(std::string_view line) {
  std::string_view rest = line;
  if (!remove_prefix(rest, kPythonTime)) {
    rest.remove_prefix(std::min(rest.find_first_not_of("0123456789"), rest.size()));
    if (rest.size() == line.size() || !remove_prefix(rest, kLogDecimals))
      return false;
  }
  const std::string_view level = rest.substr(0, rest.find(' '));
  return level == "debug" || level == "info" || level == "DEBUG" || level == "INFO";
}

}  // namespace

std::string_view last_line(std::string_view output) {
  const auto end = output.find_last_not_of(kBlanks);
  if (end == std::string_view::npos)
    return {};
  output = output.substr(0, end + 1);
  return output.substr(output.find_last_of("\r\n") + 1);
}

std::string last_words(std::string_view output, const Status& ended) {
  const std::string_view line = last_line(output);
  if (!line.empty())
    return std::string(line);
  return ended ? "it ended without output" : ended.error().context;
}

std::string_view explaining_line(std::string_view output) {
  const std::string_view line = last_line(output);
  return is_informational(line) ? std::string_view() : line;
}

std::string exit_reason(const ChildExit& exit) {
  const std::string_view line = exit.success ? "" : explaining_line(exit.log_tail);
  return line.empty() ? exit.status : exit.status + "; " + actors::bounded_text(std::string(line));
}

}  // namespace temper::orchestrator
