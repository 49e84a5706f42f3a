// Whether a measurement had the machine to itself: the share of the cores' time that went to
// programs other than this process and its children, by the kernel's accounting. A disturbed part
// is measured again; the quietest attempt is kept.
//
// Source: /proc/stat counts the time of every core by use, including time that a hypervisor gave to
// others ("steal"), in hundredths of a second; getrusage() counts this process and the children
// that it has waited for. Parts shorter than a second are therefore not judged: their share is 0.
#pragma once

#include "core/result.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

namespace temper::study {

/// Totals since the machine started, in seconds.
struct CoreAccounts {
  double busy = 0;  ///< Busy time of these cores.
  double all = 0;   ///< Total time of these cores.
  double own = 0;   ///< CPU time of this process and its children.
};

/// `busy` and `all` of these cores from the text of /proc/stat; nullopt: a core is missing there.
std::optional<CoreAccounts> read_core_accounts(std::string_view proc_stat,
                                               std::span<const std::uint32_t> cores,
                                               double ticks_per_s);
/// Accounts of the cores that this process may use; none if the system has none.
std::optional<CoreAccounts> core_accounts();

/// Share of the cores' time that other programs took between the two, from 0 to 1.
double share_of_others(const CoreAccounts& before, const CoreAccounts& after);

/// A machine is quiet if others take no more than this, which an idle system takes by itself.
inline constexpr double kQuiet = 0.05;
inline constexpr int kTries = 3;

/// Measures until others took at most kQuiet of the cores' time, at most kTries times, and keeps
/// the quietest attempt. `measure` runs one attempt; `keep` is called after each attempt that is
/// the quietest so far. Returns the share of others during the kept attempt; 0 if `accounts`
/// returns none. Error: that of `measure`.
Result<double> measure_quietly(const std::function<Status()>& measure,
                               const std::function<void()>& keep,
                               const std::function<std::optional<CoreAccounts>()>& accounts);

}  // namespace temper::study
