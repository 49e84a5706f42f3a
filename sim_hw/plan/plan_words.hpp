// Parsing that the requests of both searches share: lists of counts, limits in bytes and seconds.
// Errors name the key, the value found and the values expected. Pure functions.
#pragma once

#include "sim_hw/hardware/hardware_spec.hpp"
#include "sim_hw/memory/ledger.hpp"
#include "sim_hw/request/request.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace temper::sim_hw {

/// "1,2,4": ascending, without duplicates.
Result<std::vector<std::int64_t>> counts_of(std::string_view key, std::string_view text);
/// Divisors of `whole` up to `most`, ascending.
std::vector<std::int64_t> divisors_up_to(std::int64_t whole, std::int64_t most);

/// "60GB" under `key`, at most `most`, which is also the default.
Result<double> byte_limit(const Params& params,
                          std::string_view key,
                          double most,
                          const HardwareSpec& hardware);
/// "50ms" under `key`, as seconds.
Result<std::optional<double>> time_limit(const Params& params, std::string_view key);

/// "61.20 GiB on its fullest device (weights 40.00 + ...), 1.60 GiB above the limit of 59.60", and
/// the same for the host's share if that is exceeded.
std::string excess_text(const PlacedLedger& needed, double device_memory, double host_memory);

/// Cards of the cluster: the key `cards`, or all cards of the hardware.
Result<std::int64_t> cards_of(const Params& params, const HardwareSpec& hardware);

}  // namespace temper::sim_hw
