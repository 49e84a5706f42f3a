// Whether a measurement had the machine for itself: how much of the time of its cores went to
// programs that are neither this process nor its children, by the kernel's own accounts. A part
// that was not alone is measured again; the quietest of its tries is kept.
//
// Source: /proc/stat counts every core's time by what it did, and the time that a host gave to
// others ("steal"), in hundredths of a second; getrusage() what this process and the children that
// it has waited for took. So a part of less than a second is not judged: its share is 0.
#pragma once

#include "core/result.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

namespace temper::study {

/// Of all that was counted since the machine started, in seconds.
struct CoreAccounts {
  double busy = 0;  ///< Of these cores, whoever worked.
  double all = 0;   ///< Of these cores, idle or not.
  double own = 0;   ///< Of this process and its children.
};

/// `busy` and `all` of these cores by the text of /proc/stat; none: it does not name them all.
std::optional<CoreAccounts> read_core_accounts(std::string_view proc_stat,
                                               std::span<const std::uint32_t> cores,
                                               double ticks_per_s);
/// Of the cores that this process may use; none where the system does not tell.
std::optional<CoreAccounts> core_accounts();

/// The share of the cores' time between the two that others took, 0 to 1.
double share_of_others(const CoreAccounts& before, const CoreAccounts& after);

/// A machine on which others take no more than this is quiet: what an idle system does by itself.
inline constexpr double kQuiet = 0.05;
inline constexpr int kTries = 3;

/// Measures until others took at most kQuiet of the cores' time, kTries times at most, and keeps
/// the quietest. `measure` does it once; `keep` is called after each that was the quietest so far.
/// Gives the share of others in what was kept; 0 where `accounts` knows nothing. Error: that of
/// `measure`.
Result<double> measure_quietly(const std::function<Status()>& measure,
                               const std::function<void()>& keep,
                               const std::function<std::optional<CoreAccounts>()>& accounts);

}  // namespace temper::study
