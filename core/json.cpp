#include "core/json.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>

namespace temper::detail {

void JsonSink::begin(char bracket) {
  out_ += bracket;
  ++depth_;
  first_ = true;
}

void JsonSink::end(char bracket) {
  --depth_;
  if (!first_)
    break_line();
  out_ += bracket;
  first_ = false;
}

void JsonSink::next() {
  if (!first_)
    out_ += ',';
  first_ = false;
  break_line();
}

void JsonSink::key(std::string_view name) {
  next();
  string(name);
  out_ += style_ == JsonStyle::Pretty ? ": " : ":";
}

void JsonSink::break_line() {
  if (style_ == JsonStyle::Pretty) {
    out_ += '\n';
    out_.append(2 * depth_, ' ');
  }
}

void JsonSink::string(std::string_view text) {
  using nlohmann::json;
  out_ += json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

void JsonSink::number(double value) {
  out_ += std::isfinite(value) ? number_text(value) : "null";
}

void JsonSink::seconds(Duration d) {
  // Written as digits because a double loses nanoseconds after 104 days.
  const std::int64_t count = d.count();
  const std::uint64_t size =
      count < 0 ? ~static_cast<std::uint64_t>(count) + 1 : static_cast<std::uint64_t>(count);
  constexpr std::uint64_t kSecond = 1'000'000'000;
  out_ += fmt::format("{}{}", count < 0 ? "-" : "", size / kSecond);
  if (const std::uint64_t rest = size % kSecond; rest != 0) {
    std::string decimals = fmt::format(".{:09}", rest);
    decimals.erase(decimals.find_last_not_of('0') + 1);
    out_ += decimals;
  }
}

}  // namespace temper::detail
