#include "sim_hw/plan/plan_words.hpp"

#include "core/split.hpp"
#include "core/text/numbers.hpp"
#include "core/units.hpp"
#include "sim_hw/model/numbers.hpp"
#include "sim_hw/parallel/layout_check.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace temper::sim_hw {

Result<std::vector<std::int64_t>> counts_of(std::string_view key, std::string_view text) {
  constexpr std::int64_t kMost = 1'000'000;
  std::vector<std::int64_t> out;
  for (const std::string_view part : split(text, ",")) {
    const Result<std::int64_t> value = parse_number<std::int64_t>(part);
    if (!value || *value < 1 || *value > kMost) {
      return invalid_input(
          fmt::format("{}: expected whole numbers of 1 to {}, found `{}`", key, kMost, part));
    }
    out.push_back(*value);
  }
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::vector<std::int64_t> divisors_up_to(std::int64_t whole, std::int64_t most) {
  std::vector<std::int64_t> out;
  for (std::int64_t d = 1; d <= std::min(whole, most); ++d) {
    if (whole % d == 0)
      out.push_back(d);
  }
  return out;
}

Result<double> byte_limit(const Params& params,
                          std::string_view key,
                          double most,
                          const HardwareSpec& hardware) {
  if (!params.has(key))
    return most;
  TEMPER_TRY(const std::string text, params.text(key));
  const Result<Bytes> value = parse_bytes(text);
  if (!value)
    return Error(value.error()).within(key);
  if (value->count() < 1 || as_double(value->count()) > most) {
    return invalid_input(fmt::format("{}={}: must be above 0 and at most the {} that {} has",
                                     key,
                                     text,
                                     to_text(Bytes(static_cast<std::int64_t>(most))),
                                     hardware.name));
  }
  return as_double(value->count());
}

Result<std::optional<double>> time_limit(const Params& params, std::string_view key) {
  if (!params.has(key))
    return std::optional<double>();
  TEMPER_TRY(const std::string text, params.text(key));
  const Result<Duration> most = parse_duration(text);
  if (!most)
    return Error(most.error()).within(key);
  if (most->count() < 1)
    return invalid_input(fmt::format("{}={}: must be above 0", key, text));
  return std::optional<double>(seconds(*most));
}

std::string excess_text(const PlacedLedger& needed, double device_memory, double host_memory) {
  std::string out;
  const auto add = [&](const Ledger& ledger, double limit, std::string_view where) {
    if (ledger.total() <= limit)
      return;
    out += fmt::format("{}{:.2f} GiB {} ({}), {:.2f} GiB above the limit of {:.2f}",
                       out.empty() ? "" : " and ",
                       ledger.total() / kGib,
                       where,
                       ledger_text(ledger),
                       (ledger.total() - limit) / kGib,
                       limit / kGib);
  };
  add(needed.device, device_memory, "on its fullest device");
  add(needed.host, host_memory, "in the host's share of a device");
  return out;
}

Result<std::int64_t> cards_of(const Params& params, const HardwareSpec& hardware) {
  constexpr std::int64_t kMost = 1'000'000;
  TEMPER_TRY(const std::int64_t cards, params.integer("cards", hardware.cards()));
  if (cards < 1 || cards > kMost)
    return invalid_input(fmt::format("cards={}: expected 1 to {}", cards, kMost));
  return cards;
}

}  // namespace temper::sim_hw
